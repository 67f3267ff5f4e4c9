#include "core/double_rows.hpp"

#include "core/levels.hpp"

namespace o2 {

const DoubleRowsKernels& double_rows() {
  static const DoubleRowsKernels& found = O2_CHOSEN(double_rows);
  return found;
}

}  // namespace o2
