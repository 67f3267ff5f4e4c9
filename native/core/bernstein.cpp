#include "core/bernstein.hpp"

#include <algorithm>
#include <cmath>

#include "core/levels.hpp"
#include "core/math.hpp"

namespace o2 {
namespace {

constexpr int SHELLS = 200;

// The line of the next shell, from those of the shells before it.
struct Shells {
  double delta, slope;  // λ_k
  int k = 0;

  Shells(double bound, double delta) : delta(delta), slope(0.5 / bound) {}
  double offset() const { return log_of((k + 1.0) * (k + 2.0) / delta) / slope; }  // log(1/δ_k)/λ_k
  void next() {
    k++;
    slope *= 0.70710678118654752440;
  }
};

}  // namespace

double peeled_deviation(double v, double bound, double delta) {
  Shells shell(bound, delta);
  double lowest = shell.offset() + shell.slope * v;
  for (shell.next(); shell.k < SHELLS; shell.next()) {
    const double line = shell.offset() + shell.slope * v;
    if (!(line < lowest)) break;  // it decreases in k, then increases
    lowest = line;
  }
  return lowest;
}

void plugin_lower(const double* values, int64_t n, double log_inverse, double* bounds) {
  constexpr int64_t BLOCK = 256;
  double total = 0.5, spread = 0.25, centre = 0.5, variance = 0.25;  // prior of half a row with value 1/2
  double stakes = 0, gain = 0, cost = log_inverse, best = 0, bets[BLOCK], costs[BLOCK];
  const BetCosts bet_costs = O2_CHOSEN(bet_costs);
  for (int64_t first = 0; first < n; first += BLOCK) {
    const int64_t some = std::min(BLOCK, n - first);
    const double* y = values + first;
    for (int64_t i = 0; i < some; i++) {
      const double t = static_cast<double>(first + i) + 1.0;
      bets[i] = variance;
      costs[i] = (y[i] - centre) * (y[i] - centre);
      total += y[i];
      centre = std::min(total / (t + 1.0), 1.0);
      spread += (y[i] - centre) * (y[i] - centre);
      variance = spread / (t + 1.0);
    }
    bet_costs(bets, costs, some, static_cast<double>(first), log_inverse);
    for (int64_t i = 0; i < some; i++) {
      stakes += bets[i];
      gain += bets[i] * y[i];
      cost += costs[i];
      best = std::max(best, (gain - cost) / stakes);
      bounds[first + i] = best;
    }
  }
}

void realized_lower(const double* values, int64_t n, double delta, bool common, double* bounds) {
  double offsets[SHELLS], slopes[SHELLS];
  for (Shells shell(1.0, delta); shell.k < SHELLS; shell.next()) {
    offsets[shell.k] = shell.offset();
    slopes[shell.k] = shell.slope;
  }
  double total = 0, centre = 0.5, variation = 0, best = 0;
  int k = 0;  // the lowest line: the variation grows, so it moves to lower slopes only
  for (int64_t s = 0; s < n; s++) {
    const double y = values[s], t = static_cast<double>(s) + 1.0;
    variation += (y - centre) * (y - centre);
    total += y;
    centre = std::min((0.5 + total) / (t + 1.0), 1.0);
    double lowest = offsets[k] + slopes[k] * variation;
    for (; k + 1 < SHELLS; k++) {
      const double line = offsets[k + 1] + slopes[k + 1] * variation;
      if (!(line < lowest)) break;
      lowest = line;
    }
    const double bound = std::max(0.0, (total - lowest) / t);
    best = common ? std::max(best, bound) : bound;
    bounds[s] = best;
  }
}

}  // namespace o2
