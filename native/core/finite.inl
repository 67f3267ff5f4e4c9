#include "core/finite.hpp"

namespace o2 {
namespace {

// Adds a row to the sums of the members whose weight is not clipped. Returns the number of the others.
int64_t add_free(const ClassSums& of, const double* __restrict likelihoods, double loss, double propensity, double alpha) {
  const int64_t J = of.J;
  double *__restrict risk = of.sums, *__restrict weights = of.sums + J, *__restrict squares = of.sums + 2 * J;
  double clipped = 0;
  for (int64_t j = 0; j < J; j++) {
    const double weight = likelihoods[j] / propensity, free = weight <= alpha ? weight - 1 : 0.0;
    risk[j] += free * loss;
    weights[j] += free;
    squares[j] += free * free;
  }
  for (int64_t j = 0; j < J; j++) clipped += likelihoods[j] / propensity <= alpha ? 0.0 : 1.0;
  return static_cast<int64_t>(clipped);
}

template <bool FLAT>  // p = 0, known when compiled: the loop vectorises
void values_of_class(const ClassSums& of, double baseline, Phi penalty, double* __restrict out) {
  const int64_t J = of.J;
  const double *risks = of.sums, *weights = risks + J, *squares = weights + J, *clipped = squares + J, *losses = clipped + J;
  const double n = static_cast<double>(of.counts[0]);
  const double excess = penalty.alpha < std::numeric_limits<double>::infinity() ? penalty.alpha - 1 : 0.0;
  if (FLAT) penalty.p = 0;
  for (int64_t j = 0; j < J; j++) {
    const double risk = risks[j] + excess * losses[j] - baseline * (weights[j] + excess * clipped[j]);
    const double variance = (squares[j] + excess * excess * clipped[j]) / n;
    out[j] = risk / n + phi(variance > 0 ? variance : 0.0, penalty).value;
  }
}

void class_values(const ClassSums& of, double baseline, const Phi& penalty, double* out) {
  (penalty.p == 0 ? values_of_class<true> : values_of_class<false>)(of, baseline, penalty, out);
}

}  // namespace
}  // namespace o2
