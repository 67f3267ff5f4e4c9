// `PessimisticLog` of `o2pl.objectives.pessimistic` with a Gaussian policy on dense rows.
//
// In double precision: with a small scale, rounding a mean to single precision changes the log density a lot.
#pragma once
#include <memory>
#include <vector>

#include "core/dense.hpp"

namespace o2 {

// Of each row: the action minus the policy's centre, e = y - b, and log q. [n]
struct RealActions {
  const double *centred, *residuals, *log_propensities;
};

struct GaussianSettings {
  double alpha, size, l2;
  Phi penalty;
  double scale;      // of the policy
  bool learn_scale;  // then the last parameter is its log, and `scale` is not used
};

// The rows are of one action. `actions` is copied.
std::unique_ptr<DenseValue> gaussian_value(std::shared_ptr<const DenseRows> rows, const RealActions& actions,
                                           const GaussianSettings& settings);

// -- its kernel, compiled per level

// Sums over rows, and of the derivatives by the log of the scale.
struct GaussianSums {
  double risk = 0, variance = 0, risk_by_scale = 0, variance_by_scale = 0;
};

struct GaussianPolicy {
  const double* W;  // [count], of raw products: see `DenseRows::pack`
  double scale, log_scale, alpha;
};

struct GaussianKernels {
  // G [2, count]: gradients of risk and variance by W. columns: in lanes, like the rows
  GaussianSums (*sums)(const Rows& rows, const Products& products, int count, const RealActions& columns,
                       const GaussianPolicy& policy, double* G);
};

extern const GaussianKernels gaussian_1, gaussian_2, gaussian_3;

}  // namespace o2
