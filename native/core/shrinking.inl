#include "core/shrinking.hpp"
#include "core/wide.hpp"

namespace o2 {
namespace kernels {

template <int LEVEL>
double shrunk(const double* params, int64_t n, double size, double shrink, double* gradient) {
  using Lanes = Wide<double, 8>::Type;
  const double share = 1 / size;
  Lanes squares{}, p, g;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    memcpy(&p, params + i, sizeof p), memcpy(&g, gradient + i, sizeof g);
    g = g * share + p * shrink;
    memcpy(gradient + i, &g, sizeof g);
    squares += p * p;
  }
  for (int lane = 0; i < n; i++, lane++) {
    gradient[i] = gradient[i] * share + shrink * params[i];
    squares[lane] += params[i] * params[i];
  }
  double total = 0;
  for (int lane = 0; lane < 8; lane++) total += squares[lane];
  return total;
}

template double shrunk<O2_LEVEL>(const double*, int64_t, double, double, double*);

}  // namespace kernels
}  // namespace o2
