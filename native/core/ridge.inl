#include <cmath>

namespace o2 {
namespace {

void absorb_row(double* inverse, double* weights, const double* x, int64_t d, double target, double* direction) {
  for (int64_t i = 0; i < d; i++) direction[i] = dot8(inverse + i * d, x, d);  // A⁻¹ x
  const double predicted = dot8(weights, x, d), gain = 1.0 / (1.0 + dot8(direction, x, d));
  for (int64_t i = 0; i < d; i++) {
    weights[i] += gain * (target - predicted) * direction[i];
    const double by = gain * direction[i];
    double* own = inverse + i * d;
    for (int64_t j = 0; j < d; j++) own[j] -= by * direction[j];
  }
}

void ridge_scores(const double* inverses, const double* weights, const double* x, int64_t K, int64_t d, double* means,
                  double* deviations) {
  for (int64_t k = 0; k < K; k++) {
    double quadratic = 0.0;
    for (int64_t i = 0; i < d; i++) quadratic += x[i] * dot8(inverses + (k * d + i) * d, x, d);
    means[k] = dot8(weights + k * d, x, d);
    deviations[k] = std::sqrt(quadratic > 0 ? quadratic : 0.0);
  }
}

}  // namespace
}  // namespace o2
