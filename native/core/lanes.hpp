// Sixteen rows at a time.
#pragma once
#include "core/dense_kernels.hpp"

namespace o2 {

inline int up_to_lanes(int n) { return (n + LANES - 1) / LANES * LANES; }

}  // namespace o2
