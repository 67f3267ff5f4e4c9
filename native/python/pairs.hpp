// The stored curvature of L-BFGS, in NumPy arrays.
#pragma once
#include "core/lbfgs.hpp"
#include "python/arrays.hpp"

namespace o2 {

inline Pairs pairs_of(int64_t n, Array<float, 2> steps, Array<float, 2> changes, Array<double> inner, Array<int64_t> at) {
  const int64_t memory = inner.size();
  expect(steps.shape[0] == memory && steps.shape[1] == n && changes.shape == steps.shape && at.size() == 2 && memory > 0,
        "pairs: found another shape than the parameters");
  expect(at[0] >= 0 && at[0] < memory && at[1] >= 0 && at[1] <= memory, "pairs: found a position out of range");
  return {memory, n, n, steps.data, changes.data, inner.data, at.data, at.data + 1};
}

}  // namespace o2
