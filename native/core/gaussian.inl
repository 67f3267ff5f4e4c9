#include "core/eight.hpp"
#include "core/gaussian.hpp"
#include "core/math.hpp"

namespace o2 {
namespace {

// ∂ log π / ∂ mean = z / scale, ∂ log π / ∂ log scale = z² - 1
GaussianSums gaussian_partial(int64_t rows, int64_t n, const CentredRows& columns, const GaussianPolicy& policy,
                              double* __restrict means, double* __restrict of_variances) {
  constexpr double LOG_ROOT_2PI = 0.91893853320467274178;
  constexpr int64_t BLOCK = 256;
  const double constant = policy.log_scale + LOG_ROOT_2PI, alpha = policy.alpha, inverse = 1 / policy.scale;
  double risk[BLOCK], variance[BLOCK], risk_by_scale[BLOCK], variance_by_scale[BLOCK];
  Eight totals[4] = {eight_of(0), eight_of(0), eight_of(0), eight_of(0)};
  for (int64_t start = 0; start < n; start += BLOCK) {
    const int64_t some = n - start < BLOCK ? n - start : BLOCK;
    double *mean = means + start, *second = of_variances + start;
    const double *centred = columns.centred + start, *residuals = columns.residuals + start;
    const double* log_propensities = columns.log_propensities + start;
    const int64_t there = rows - start;
    for (int64_t i = 0; i < some; i++) {
      const double z = (centred[i] - mean[i]) * inverse, w = exp_of(-0.5 * (z * z) - constant - log_propensities[i]);
      const double off = i < there ? (w < alpha ? w : alpha) - 1.0 : 0.0;
      const double live = w < alpha && i < there ? w : 0.0, away = live * (live - 1.0);
      const double of_risk = live * residuals[i], of_variance = away + away, steepness = z * z - 1.0, pulled = z * inverse;
      risk[i] = off * residuals[i], variance[i] = off * off;
      risk_by_scale[i] = of_risk * steepness, variance_by_scale[i] = of_variance * steepness;
      mean[i] = of_risk * pulled, second[i] = of_variance * pulled;
    }
    for (int64_t i = 0; i < some; i += 8) {
      totals[0] = totals[0] + eight_at(risk + i);
      totals[1] = totals[1] + eight_at(variance + i);
      totals[2] = totals[2] + eight_at(risk_by_scale + i);
      totals[3] = totals[3] + eight_at(variance_by_scale + i);
    }
  }
  return {sum(totals[0]), sum(totals[1]), sum(totals[2]), sum(totals[3])};
}

// Eight at a time, the last ones too: their results do not depend on where a row is.
void logarithms_of(const double* x, int64_t n, double* out) {
  for (int64_t from = 0; from < n; from += EIGHT) {
    double own[EIGHT];
    const int64_t some = n - from < EIGHT ? n - from : EIGHT;
    for (int64_t l = 0; l < EIGHT; l++) own[l] = l < some ? x[from + l] : 1.0;
    for (int64_t l = 0; l < EIGHT; l++) own[l] = log_of(own[l]);
    for (int64_t l = 0; l < some; l++) out[from + l] = own[l];
  }
}

}  // namespace

const GaussianKernels O2_TABLE(gaussian) = {gaussian_partial, logarithms_of};

}  // namespace o2
