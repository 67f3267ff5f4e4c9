// The pass from a row of inputs to scores, compiled per level of instructions.
#pragma once
#include <cstdint>

namespace o2 {

constexpr int SCORES_AT_ONCE = 8;  // columns of weights are padded to a multiple of it

struct DecidingKernels {
  // out [columns] = row [width] · W [width, columns], in double precision
  void (*weighted_sums)(const double* row, int64_t width, const double* W, int64_t columns, double* out);
  // out [m (m + 1) / 2]: (f_i f_j - shift) scale, i <= j. f [m]
  void (*products)(const double* f, int64_t m, const double* shift, const double* scale, double* out);
};

extern const DecidingKernels deciding_1, deciding_2, deciding_3;

}  // namespace o2
