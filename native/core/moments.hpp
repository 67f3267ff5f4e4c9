// Running mean and deviation of one number.
#pragma once
#include <cmath>

namespace o2 {

// Mean and Σ (x - mean)² with one more value, whose fraction of all values is `share`.
inline void welford(double x, double share, double& mean, double& squares) {
  const double off = x - mean;
  mean += off * share;
  squares += off * (x - mean);
}

// 1 / deviation; 0 for constant values: smaller deviations, relative to the mean, are rounding errors of float32.
inline double inverse_deviation(double count, double mean, double squares) {
  constexpr double ROUNDING = 1e-6;
  const double deviation = std::sqrt(squares / count);
  return deviation > ROUNDING * std::fabs(mean) ? 1 / deviation : 0.0;
}

}  // namespace o2
