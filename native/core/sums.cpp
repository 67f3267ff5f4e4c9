#include "core/sums.hpp"

#include "core/levels.hpp"

namespace o2 {

const SumKernels& sum_kernels() {
  static const SumKernels& found = O2_CHOSEN(sums);
  return found;
}

}  // namespace o2
