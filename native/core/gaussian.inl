#include "core/eight.hpp"
#include "core/gaussian.hpp"
#include "core/math.hpp"

namespace o2 {
namespace {

constexpr int GAUSSIAN_BLOCK = 16;  // vectors of rows that are worked on together

// Half of a feature of sixteen rows.
O2_IN Eight half_feature(const float* x, const Products& p, int q, int half) {
  const Eight first = eight_of_floats(x + p.first[q] + half);
  return p.linear ? first : first * eight_of_floats(x + p.second[q] + half);
}

GaussianSums gaussian_sums(const Rows& rows, const Products& p, int count, const RealActions& columns,
                           const GaussianPolicy& policy, double* G) {
  constexpr double LOG_ROOT_2PI = 0.91893853320467274178;
  constexpr int MOST = GAUSSIAN_BLOCK * LANES;
  const int step = rows.factors * LANES;
  const double constant = policy.log_scale + LOG_ROOT_2PI, alpha = policy.alpha, inverse = 1 / policy.scale;
  double mean[MOST], risk[MOST], variance[MOST], by_scale[2][MOST], pulled[2][MOST];
  Eight totals[4] = {eight_of(0), eight_of(0), eight_of(0), eight_of(0)};
  for (int q = 0; q < 2 * count; q++) G[q] = 0;
  for (int v = 0; v < rows.vectors; v += GAUSSIAN_BLOCK) {
    const int some = rows.vectors - v < GAUSSIAN_BLOCK ? rows.vectors - v : GAUSSIAN_BLOCK, n = some * LANES;
    const float* x = rows.x + static_cast<int64_t>(v) * step;
    const int64_t first = static_cast<int64_t>(v) * LANES;
    for (int u = 0; u < some; u++) {
      Eight low = eight_of(0), high = eight_of(0);
      for (int q = 0; q < count; q++) {
        const Eight w = eight_of(policy.W[q]);
        low = low + w * half_feature(x + u * step, p, q, 0);
        high = high + w * half_feature(x + u * step, p, q, 8);
      }
      to_lanes(low, mean + u * LANES);
      to_lanes(high, mean + u * LANES + 8);
    }
    const double *centred = columns.centred + first, *residuals = columns.residuals + first;
    const double* log_propensities = columns.log_propensities + first;
    const float* real = rows.weight + first;  // 0 where there is no row
    for (int i = 0; i < n; i++) {
      const double z = (centred[i] - mean[i]) * inverse, w = exp_of(-0.5 * (z * z) - constant - log_propensities[i]);
      const double off = real[i] > 0 ? (w < alpha ? w : alpha) - 1.0 : 0.0;
      const double live = w < alpha && real[i] > 0 ? w : 0.0;  // ∂ log π / ∂ mean = z / scale, by log scale z² - 1
      const double of_risk = live * residuals[i], away = live * (live - 1.0), of_variance = away + away;
      risk[i] = off * residuals[i], variance[i] = off * off;
      by_scale[0][i] = of_risk * (z * z - 1.0), by_scale[1][i] = of_variance * (z * z - 1.0);
      pulled[0][i] = of_risk * z * inverse, pulled[1][i] = of_variance * z * inverse;
    }
    for (int i = 0; i < n; i += 8) {
      totals[0] = totals[0] + eight_at(risk + i);
      totals[1] = totals[1] + eight_at(variance + i);
      totals[2] = totals[2] + eight_at(by_scale[0] + i);
      totals[3] = totals[3] + eight_at(by_scale[1] + i);
    }
    for (int q = 0; q < count; q++) {
      Eight of_risk = eight_of(0), of_variance = eight_of(0);
      for (int u = 0; u < some; u++)
        for (int half = 0; half < LANES; half += 8) {
          const Eight f = half_feature(x + u * step, p, q, half);
          of_risk = of_risk + f * eight_at(pulled[0] + u * LANES + half);
          of_variance = of_variance + f * eight_at(pulled[1] + u * LANES + half);
        }
      G[q] += sum(of_risk);
      G[count + q] += sum(of_variance);
    }
  }
  return {sum(totals[0]), sum(totals[1]), sum(totals[2]), sum(totals[3])};
}

}  // namespace

const GaussianKernels O2_TABLE(gaussian) = {gaussian_sums};

}  // namespace o2
