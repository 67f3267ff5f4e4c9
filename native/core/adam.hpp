// Adam: moments of the gradient decay by .9 and .999 per step.
#pragma once
#include <cstdint>

#include "core/math.hpp"

namespace o2 {

constexpr double ADAM_FIRST = 0.9, ADAM_SECOND = 0.999, ADAM_FLOOR = 1e-8;  // decay of both moments; of the denominator

// 1 - decay^step
static inline double adam_grown(double decay, int64_t step) { return 1 - exp_of(static_cast<double>(step) * log_of(decay)); }

// One step in place, in the precision of the parameters; `step` counts from 1. All [n]
//
//     m ← .9 m + .1 g,   v ← .999 v + .001 g²,   θ ← θ - η/(1 - .9^step) m / (√(v / (1 - .999^step)) + 1e-8)
void adam_step(float* params, const float* gradient, float* first, float* second, int64_t n, int64_t step, double step_size);
void adam_step(double* params, const double* gradient, double* first, double* second, int64_t n, int64_t step, double step_size);

}  // namespace o2
