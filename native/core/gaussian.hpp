// `PessimisticLog` of `o2pl.objectives.pessimistic` with a Gaussian policy on dense rows.
//
// In double precision: with a small scale, rounding a mean to single precision changes the log density a lot.
#pragma once
#include <memory>
#include <vector>

#include "core/dense.hpp"

namespace o2 {

// Of each row: the action minus the policy's centre, e = y - b, and q. [n]
struct RealActions {
  const double *centred, *residuals, *propensities;
};

struct GaussianSettings {
  double alpha, size, l2;
  Phi penalty;
  double scale;      // of the policy
  bool learn_scale;  // then the last parameter is its log, and `scale` is not used
};

// The rows are of one action. `actions` are copied.
std::unique_ptr<DenseValue> gaussian_value(std::shared_ptr<const DenseRows> rows, const RealActions& actions,
                                           const GaussianSettings& settings);

// -- its kernel, compiled per level

// Sums over rows, and of the derivatives by the log of the scale.
struct GaussianSums {
  double risk = 0, variance = 0, risk_by_scale = 0, variance_by_scale = 0;
};

// `RealActions` in lanes, with log q; 0 where no row is.
struct CentredRows {
  const double *centred, *residuals, *log_propensities;
};

struct GaussianPolicy {
  double scale, log_scale, alpha;
};

struct GaussianKernels {
  // Means minus the centre, [n] in lanes, become cotangents of the risk; `of_variances` gets those of the variance. n is a
  // multiple of 8; rows: how many of them are rows.
  GaussianSums (*partial)(int64_t rows, int64_t n, const CentredRows& columns, const GaussianPolicy& policy, double* means,
                          double* of_variances);
  void (*logarithms)(const double* x, int64_t n, double* out);
};

extern const GaussianKernels gaussian_1, gaussian_2, gaussian_3;

}  // namespace o2
