// Scores of dense rows in double precision, and their pullback: for policies that are no softmax among all actions.
#pragma once
#include "core/dense_kernels.hpp"

namespace o2 {

struct DoubleRowsKernels {  // room: `laid_of(factors)` numbers
  // out [vectors · 16]: scores of rows in lanes. W [count]: of raw products, see `DenseRows::pack`
  void (*scores)(const Rows& rows, const Products& products, int count, const double* W, double* out, float* room);
  // G [2, count]: the gradients by W of two sums whose cotangents are `first` and `second`, in lanes; 0 where no row is
  void (*pull)(const Rows& rows, const Products& products, int count, const double* first, const double* second, double* G,
               float* room);
};

extern const DoubleRowsKernels double_rows_1, double_rows_2, double_rows_3;
const DoubleRowsKernels& double_rows();  // of this machine's level

}  // namespace o2
