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

}  // namespace o2
