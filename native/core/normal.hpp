// A real-valued action from a normal distribution.
#pragma once
#include <algorithm>

#include "core/cells.hpp"
#include "core/special.hpp"

namespace o2 {

static inline double normal_density(double action, double mean, double scale) {
  const double z = (action - mean) / scale;
  return exp_of(-0.5 * (z * z)) / (scale * 2.50662827463100050242);  // √(2π)
}

// By inversion of a uniform number; 0 counts as 1e-16.
static inline DrawnNumber draw_normal(double mean, double scale, double uniform) {
  const double action = mean + scale * ndtri(std::max(uniform, 1e-16));
  return {action, normal_density(action, mean, scale)};
}

}  // namespace o2
