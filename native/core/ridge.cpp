#include "core/ridge.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/math.hpp"
#include "core/penalty.hpp"
#include "core/running_features.hpp"
#include "core/special.hpp"
#include "core/vector_kernels.hpp"

namespace o2 {

void absorb_row(double* inverse, double* weights, const double* x, int64_t d, double target) {
  std::vector<double> room(d);
  vector_kernels().absorb_row(inverse, weights, x, d, target, room.data());
}

void ridge_scores(const double* inverses, const double* weights, const double* x, int64_t K, int64_t d, double* means,
                  double* deviations) {
  vector_kernels().ridge_scores(inverses, weights, x, K, d, means, deviations);
}

namespace {

// The inverse of A + ridge I, symmetric and positive: A [d, width], of which the lower triangle is used, becomes it.
void invert(double* A, int64_t d, int64_t width, double ridge) {
  std::vector<double> L(d * d), inverse(d * d);  // A + ridge I = L Lᵀ; L⁻¹
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j <= i; j++) {
      double left = A[i * width + j] + (i == j ? ridge : 0);
      for (int64_t k = 0; k < j; k++) left -= L[i * d + k] * L[j * d + k];
      L[i * d + j] = i == j ? std::sqrt(left) : left / L[j * d + j];
    }
  for (int64_t i = 0; i < d; i++) {  // row by row: L⁻¹_i = (e_i - Σ_{k<i} L_ik L⁻¹_k) / L_ii
    double* own = inverse.data() + i * d;
    for (int64_t k = 0; k < i; k++)
      for (int64_t j = 0; j <= k; j++) own[j] -= L[i * d + k] * inverse[k * d + j];
    for (int64_t j = 0; j < i; j++) own[j] /= L[i * d + i];
    own[i] = 1 / L[i * d + i];
  }
  std::fill(A, A + d * width, 0.0);
  for (int64_t k = 0; k < d; k++)  // L⁻ᵀ L⁻¹
    for (int64_t i = 0; i <= k; i++)
      for (int64_t j = 0; j <= k; j++) A[i * width + j] += inverse[k * d + i] * inverse[k * d + j];
}

}  // namespace

void ridge_baseline(const Plan& plan, const float* X, const double* losses, int64_t n, double baseline, double ridge, double* out) {
  constexpr int64_t STRETCH = 1 << 12, EIGHT = 8;  // rows at a time
  const int64_t d = plan.width(), width = (d + EIGHT - 1) / EIGHT * EIGHT;
  if (std::isnan(baseline)) baseline = baseline_of_mean(std::accumulate(losses, losses + n, 0.0), static_cast<double>(n));
  const auto& kernels = vector_kernels();
  std::vector<double> products(d * width), moments(width), coefficients(width), targets(n);
  std::vector<float> rows(std::min(n, STRETCH) * d);
  for (int64_t r = 0; r < n; r++) targets[r] = losses[r] - baseline;
  for (int64_t at = 0; at < n; at += STRETCH) {
    const int64_t some = std::min(STRETCH, n - at);
    transform(plan, X + at * plan.d, some, rows.data());
    kernels.add_products(rows.data(), targets.data() + at, some, d, products.data(), moments.data());
  }
  invert(products.data(), d, width, ridge);
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < d; j++) coefficients[i] += products[i * width + j] * moments[j];
  for (int64_t at = 0; at < n; at += STRETCH) {
    const int64_t some = std::min(STRETCH, n - at);
    if (n > STRETCH) transform(plan, X + at * plan.d, some, rows.data());
    kernels.left_out(rows.data(), targets.data() + at, some, d, products.data(), coefficients.data(), out + at);
  }
  for (int64_t r = 0; r < n; r++) out[r] = std::min(std::max(out[r] + baseline, -1.0), 0.0);
}

namespace {

constexpr int NODES = 16;

// Gauss-Legendre quadrature on [-1, 1]: the roots of P_16, by Newton's method, and their weights.
struct Quadrature {
  std::array<double, NODES> nodes, weights;

  Quadrature() {
    constexpr double PI = 3.14159265358979323846;
    for (int k = 0; k < NODES; k++) {
      double x = -cos_of(PI * (k + 0.75) / (NODES + 0.5)), slope = 0;
      for (int turn = 0; turn < 8; turn++) {
        double before = 0, value = 1;
        for (int j = 0; j < NODES; j++) {
          const double next = ((2 * j + 1) * x * value - j * before) / (j + 1);
          before = value, value = next;
        }
        slope = NODES * (x * value - before) / (x * x - 1);
        x -= value / slope;
      }
      nodes[k] = x, weights[k] = 2 / ((1 - x * x) * slope * slope);
    }
  }
};

constexpr double FAR = 8.5;  // standard deviations: a normal variable is beyond with probability below 1e-16
constexpr std::array KNOTS = {-FAR, -3.0, 0.0, 3.0, FAR};  // between these, 16 nodes integrate Φ to 1e-9

}  // namespace

double best_probability(const double* means, const double* deviations, int64_t K, int64_t action) {
  static const Quadrature quadrature;
  const double mean = means[action], deviation = deviations[action];
  if (deviation == 0.0) return 1.0;  // deterministic
  double low = mean - FAR * deviation;
  const double high = mean + FAR * deviation;
  for (int64_t j = 0; j < K; j++)  // below this, another action is always larger
    if (j != action) low = std::max(low, means[j] - FAR * deviations[j]);
  std::vector<double> knots = {low, high};  // of all actions: between them the integrand is smooth
  double sharpest = deviation;
  for (int64_t j = 0; j < K; j++) {
    if (!(means[j] + FAR * deviations[j] > low)) continue;  // it is always smaller
    sharpest = std::min(sharpest, deviations[j]);
    for (const double knot : KNOTS) {
      const double at = means[j] + knot * deviations[j];
      if (low < at && at < high) knots.push_back(at);
    }
  }
  std::sort(knots.begin() + 1, knots.end());
  double total = 0.0, start = low;
  for (size_t next = 1; next < knots.size(); next++) {
    const double end = knots[next];
    if (end - start < sharpest && end < high) continue;  // merge close knots
    const double half = 0.5 * (end - start);
    for (int node = 0; node < NODES; node++) {
      const double z = start + half * (1.0 + quadrature.nodes[node]), off = (z - mean) / deviation;
      double value = exp_of(-0.5 * (off * off));
      for (int64_t j = 0; j < K; j++)
        if (j != action && means[j] + FAR * deviations[j] > z)
          value *= ndtr((z - means[j]) / deviations[j]);
      total += half * quadrature.weights[node] * value;
    }
    start = end;
  }
  return std::min(std::max(total / (deviation * 2.50662827463100050242), 1e-300), 1.0);
}

}  // namespace o2
