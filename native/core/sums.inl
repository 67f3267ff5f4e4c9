#include <limits>

#include "core/eight.hpp"
#include "core/sums.hpp"

namespace o2 {
namespace {

ShiftedSums shifted(const double* values, int64_t n, double first) {
  const Eight origin = eight_of(first);
  Eight total = eight_of(0), squares = total;
  int64_t s = 0;
  for (; s + EIGHT <= n; s += EIGHT) {
    const Eight own = eight_at(values + s) - origin;
    total = total + own;
    squares = squares + own * own;
  }
  ShiftedSums out{sum(total), sum(squares)};
  for (; s < n; s++) {
    const double own = values[s] - first;
    out.total += own;
    out.squares += own * own;
  }
  return out;
}

template <bool MODELLED>
Weighed weighed_by(const double* weights, const double* rewards, const double* modelled, int64_t n) {
  constexpr double INFINITE = std::numeric_limits<double>::infinity();
  const Eight zero = eight_of(0);
  Eight size = zero, squares = zero, lowest = eight_of(INFINITE), highest = eight_of(-INFINITE);
  int64_t s = 0;
  for (; s + EIGHT <= n; s += EIGHT) {
    const Eight w = eight_at(weights + s), r = eight_at(rewards + s);
    const Eight surprise = MODELLED ? r - eight_at(modelled + s) : r;
    size = size + most(w, zero - w);
    squares = squares + w * w;
    lowest = least(surprise, lowest);
    highest = most(surprise, highest);
  }
  Weighed out{sum(size), sum(squares), INFINITE, -INFINITE};
  const auto meet = [&](double surprise) {
    out.least = surprise < out.least ? surprise : out.least;
    out.most = surprise > out.most ? surprise : out.most;
  };
  if (s > 0) {
    double lanes[2 * EIGHT];
    to_lanes(lowest, lanes);
    to_lanes(highest, lanes + EIGHT);
    for (const double lane : lanes) meet(lane);
  }
  for (; s < n; s++) {
    out.size += weights[s] < 0 ? -weights[s] : weights[s];
    out.squares += weights[s] * weights[s];
    meet(MODELLED ? rewards[s] - modelled[s] : rewards[s]);
  }
  return out;
}

Weighed weighed(const double* weights, const double* rewards, const double* modelled, int64_t n) {
  return modelled ? weighed_by<true>(weights, rewards, modelled, n) : weighed_by<false>(weights, rewards, nullptr, n);
}

}  // namespace

const SumKernels O2_TABLE(sums) = {shifted, weighed};

}  // namespace o2
