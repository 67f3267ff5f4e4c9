#include "core/vector_kernels.hpp"

#include "core/levels.hpp"

namespace o2 {

const VectorKernels& vector_kernels() {
  static const VectorKernels& found = O2_CHOSEN(vector);
  return found;
}

}  // namespace o2
