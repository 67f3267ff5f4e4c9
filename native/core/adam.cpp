#include "core/adam.hpp"

#include "core/vector_kernels.hpp"

namespace o2 {
void adam_step(float* params, const float* gradient, float* first, float* second, int64_t n, int64_t step, double step_size) {
  vector_kernels().adam_float(params, gradient, first, second, n,
                              step_size / adam_grown(ADAM_FIRST, step), 1 / adam_grown(ADAM_SECOND, step));
}

void adam_step(double* params, const double* gradient, double* first, double* second, int64_t n, int64_t step, double step_size) {
  vector_kernels().adam_double(params, gradient, first, second, n,
                              step_size / adam_grown(ADAM_FIRST, step), 1 / adam_grown(ADAM_SECOND, step));
}

}  // namespace o2
