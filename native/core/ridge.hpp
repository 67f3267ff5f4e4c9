// A ridge regression per action, of LinUCB and LinTS, and the probability that a normal variable is the largest.
#pragma once
#include <cstdint>

#include "core/dense.hpp"

namespace o2 {

// In place, for A += xxᵀ and u += y x (Sherman-Morrison). inverse A⁻¹ [d, d], weights θ [d]
//
//     A⁻¹ -= A⁻¹x xᵀA⁻¹ / (1 + xᵀA⁻¹x);  θ += A⁻¹x (y - θ·x) / (1 + xᵀA⁻¹x), with the old A⁻¹
void absorb_row(double* inverse, double* weights, const double* x, int64_t d, double target);

// x·θ_k and √(xᵀ A_k⁻¹ x) of each action, [K] each. inverses [K, d, d], weights [K, d]
void ridge_scores(const double* inverses, const double* weights, const double* x, int64_t K, int64_t d, double* means,
                  double* deviations);

// m(x) of each row, [n]: a ridge regression of y - b on the features of all rows, without that row, plus b, in [-1, 0]. With
// G = Σ x xᵀ + ridge I, c = G⁻¹ Σ (y - b) x and the leverage h = xᵀ G⁻¹ x it is (c·x - h (y - b)) / (1 - h) + b.
// baseline: b; NaN: the mean of the losses, as in `baseline_at`.
void ridge_baseline(const Plan& plan, const float* X, const double* losses, int64_t n, double baseline, double ridge, double* out);

// P(X_k is the largest) for k = `action` and independent X_j ~ N(mean_j, deviation_j²): ∫ φ_k(z) Π_{j≠k} Φ_j(z) dz
double best_probability(const double* means, const double* deviations, int64_t K, int64_t action);

}  // namespace o2
