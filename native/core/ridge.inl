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

// A row in double precision, with zeros up to whole vectors, to x; the room after d must be 0.
O2_IN void widened(const float* row, int64_t d, double* x) {
  for (int64_t i = 0; i < d; i++) x[i] = static_cast<double>(row[i]);
}

void add_products(const float* rows, const double* targets, int64_t n, int64_t d, double* products, double* moments) {
  constexpr int64_t ROWS = 4;
  const int64_t width = in_eights(d);
  double* x = new double[ROWS * width]();
  for (int64_t r = 0; r < n; r += ROWS) {  // four rows at a time; of the last ones, some are 0
    const int64_t some = n - r < ROWS ? n - r : ROWS;
    double y[ROWS] = {};
    for (int64_t k = 0; k < ROWS; k++) {
      if (k < some) widened(rows + (r + k) * d, d, x + k * width), y[k] = targets[r + k];
      else memset(x + k * width, 0, width * sizeof(double));
    }
    for (int64_t i = 0; i < d; i++) {
      double* own = products + i * width;
      const Eight a = eight_of(x[i]), b = eight_of(x[width + i]), c = eight_of(x[2 * width + i]), e = eight_of(x[3 * width + i]);
      for (int64_t j = 0; j <= i; j += EIGHT) {
        const Eight first = a * eight_at(x + j) + b * eight_at(x + width + j);
        const Eight second = c * eight_at(x + 2 * width + j) + e * eight_at(x + 3 * width + j);
        to_lanes(eight_at(own + j) + (first + second), own + j);
      }
    }
    for (int64_t j = 0; j < width; j += EIGHT) {
      const Eight first = eight_of(y[0]) * eight_at(x + j) + eight_of(y[1]) * eight_at(x + width + j);
      const Eight second = eight_of(y[2]) * eight_at(x + 2 * width + j) + eight_of(y[3]) * eight_at(x + 3 * width + j);
      to_lanes(eight_at(moments + j) + (first + second), moments + j);
    }
  }
  delete[] x;
}

void left_out(const float* rows, const double* targets, int64_t n, int64_t d, const double* inverse, const double* coefficients,
              double* out) {
  const int64_t width = in_eights(d);
  double *x = new double[2 * width](), *v = x + width;
  for (int64_t r = 0; r < n; r++) {
    widened(rows + r * d, d, x);
    for (int64_t j = 0; j < width; j += EIGHT) {
      Eight even = eight_of(0), odd = eight_of(0);
      int64_t i = 0;
      for (; i + 2 <= d; i += 2) {
        even = even + eight_of(x[i]) * eight_at(inverse + i * width + j);
        odd = odd + eight_of(x[i + 1]) * eight_at(inverse + (i + 1) * width + j);
      }
      if (i < d) even = even + eight_of(x[i]) * eight_at(inverse + i * width + j);
      to_lanes(even + odd, v + j);
    }
    const double leverage = dot8(x, v, width);
    out[r] = (dot8(x, coefficients, width) - leverage * targets[r]) / (1 - leverage);
  }
  delete[] x;
}

}  // namespace
}  // namespace o2
