// The part of an objective's gradient that shrinks the parameters.
#pragma once
#include <cstdint>

namespace o2 {

// Turns sums of gradients into means, and adds shrink · params. Returns |params|².
double shrunk(const double* params, int64_t n, double size, double shrink, double* gradient);

namespace kernels {

template <int LEVEL>
double shrunk(const double* params, int64_t n, double size, double shrink, double* gradient);

}  // namespace kernels
}  // namespace o2
