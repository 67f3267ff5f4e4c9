// The pass from a row of inputs to scores, compiled per level of instructions.
#pragma once
#include <cstdint>

namespace o2 {

constexpr int SCORES_AT_ONCE = 8;  // columns of weights are padded to a multiple of it
constexpr int SCORED_TOGETHER = 4;  // rows that share what is read of the weights

struct DecidingKernels {
  // out [n, columns] = rows [n, width] · W [width, columns], in double precision; rows are `stride` apart. The same bits for
  // one row and for many.
  void (*weighted_sums)(const double* rows, int64_t n, int64_t stride, int64_t width, const double* W, int64_t columns, double* out);
  // out [m (m + 1) / 2]: (f_i f_j - shift) scale, i <= j. f [m]
  void (*products)(const double* f, int64_t m, const double* shift, const double* scale, double* out);
};

extern const DecidingKernels deciding_1, deciding_2, deciding_3;

}  // namespace o2
