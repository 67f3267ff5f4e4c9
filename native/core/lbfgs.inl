#include "core/lbfgs.hpp"

namespace o2 {
namespace kernels {

// Sums in sixteen parts, which vectorise; always in this order.
template <int LEVEL, class X, class Y>
double dot(const X* x, const Y* y, int64_t n) {
  double part[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int l = 0; l < 16; l++) part[l] += static_cast<double>(x[i + l]) * static_cast<double>(y[i + l]);
  for (int l = 0; i < n; i++, l++) part[l] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  for (int width = 8; width; width /= 2)
    for (int l = 0; l < width; l++) part[l] += part[l + width];
  return part[0];
}

template <int LEVEL>
void add(double by, const float* x, double* to, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] += by * static_cast<double>(x[i]);
}

template double dot<O2_LEVEL>(const double*, const double*, int64_t);
template double dot<O2_LEVEL>(const float*, const double*, int64_t);
template double dot<O2_LEVEL>(const float*, const float*, int64_t);
template void add<O2_LEVEL>(double, const float*, double*, int64_t);

}  // namespace kernels
}  // namespace o2
