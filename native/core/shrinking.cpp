#include "core/shrinking.hpp"

#include "core/levels.hpp"

namespace o2 {

double shrunk(const double* params, int64_t n, double size, double shrink, double* gradient) {
  return at_level([&](auto L) { return kernels::shrunk<L>(params, n, size, shrink, gradient); });
}

}  // namespace o2
