#include "core/curve.hpp"

#include <cmath>
#include <vector>

namespace o2 {

void legendre(double place, int64_t count, double* out) {
  const double x = 2 * place - 1;
  double before = 0.0, last = 1.0;
  for (int64_t i = 0; i < count; i++) {
    const double j = static_cast<double>(i), next = ((2 * j + 1) * x * last - j * before) / (j + 1);
    out[i] = last * std::sqrt(2 * j + 1);
    before = last, last = next;
  }
}

void curve_design(const double* features, int64_t width, const double* places, int64_t n, const CurveTerms& terms, double* out) {
  std::vector<double> curve(terms.degree + 1);
  for (int64_t r = 0; r < n; r++) {
    legendre(places[r], terms.degree + 1, curve.data());
    const double* x = features + r * width;
    for (int64_t i = 0; i < terms.count; i++)
      out[r * terms.count + i] = terms.scales[i] * curve[terms.powers[i]] * x[terms.features[i]];
  }
}

void curve_weights(const double* thetas, int64_t S, const double* basis, int64_t places, int64_t width, const CurveTerms& terms,
                   double* out) {
  const int64_t powers = terms.degree + 1;
  std::vector<double> W(powers * width);  // by power and feature
  for (int64_t s = 0; s < S; s++, thetas += terms.count) {
    for (int64_t i = 0; i < terms.count; i++) W[terms.powers[i] * width + terms.features[i]] = terms.scales[i] * thetas[i];
    for (int64_t k = 0; k < places; k++, out += width) {
      const double* own = basis + k * powers;
      for (int64_t f = 0; f < width; f++) out[f] = own[0] * W[f];
      for (int64_t j = 1; j < powers; j++)
        for (int64_t f = 0; f < width; f++) out[f] += own[j] * W[j * width + f];
    }
  }
}

}  // namespace o2
