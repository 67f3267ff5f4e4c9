#include "core/lbfgs.hpp"
#include "core/wide.hpp"

namespace o2 {
namespace {

using Lanes = Wide<double, 8>::Type;

O2_IN Lanes lanes_at(const double* x) {
  Lanes found;
  memcpy(&found, x, sizeof found);
  return found;
}

}  // namespace

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

template <int LEVEL>
double largest(const double* x, int64_t n) {
  Lanes tops{};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Lanes some = lanes_at(x + i), sizes = some < 0 ? -some : some;
    tops = tops < sizes ? sizes : tops;
  }
  double top = 0;
  for (int l = 0; l < 8; l++) top = top < tops[l] ? tops[l] : top;
  for (; i < n; i++) {
    const double size = x[i] < 0 ? -x[i] : x[i];
    top = top < size ? size : top;
  }
  return top;
}

template <int LEVEL>
void scale(double by, const double* x, double* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Lanes made = lanes_at(x + i) * by;
    memcpy(to + i, &made, sizeof made);
  }
  for (; i < n; i++) to[i] = x[i] * by;
}

template <int LEVEL>
void combine(const double* x, double by, const double* y, double* to, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const Lanes made = lanes_at(x + i) + lanes_at(y + i) * by;
    memcpy(to + i, &made, sizeof made);
  }
  for (; i < n; i++) to[i] = x[i] + by * y[i];
}

template double dot<O2_LEVEL>(const double*, const double*, int64_t);
template double dot<O2_LEVEL>(const float*, const double*, int64_t);
template double dot<O2_LEVEL>(const float*, const float*, int64_t);
template void add<O2_LEVEL>(double, const float*, double*, int64_t);
template double largest<O2_LEVEL>(const double*, int64_t);
template void scale<O2_LEVEL>(double, const double*, double*, int64_t);
template void combine<O2_LEVEL>(const double*, double, const double*, double*, int64_t);

}  // namespace kernels
}  // namespace o2
