// The action-wise softmax on action sets: a set's rows are its actions. See `o2pl.kernels.actionwise`.
#pragma once
#include <cstdint>

namespace o2 {

// Sets of one block: set s has the rows offsets[s] - offsets[0], …, up to offsets[s + 1] - offsets[0].
struct SetsLog {
  const int64_t *offsets, *actions;   // [n + 1], [n]
  const double *residuals, *inverse;  // y - b, 1/q [n]
  int64_t n;
  double alpha;
};

struct SetSums {
  double risk = 0, variance = 0;
};

// Cotangents of the risk's and the variance's sums from the scores of all rows, which become probabilities.
SetSums actionwise_partial(const SetsLog& log, double* scores, double* of_risk, double* of_variance);

namespace kernels {  // once per level of instructions; room [3 n]

template <int LEVEL>
SetSums actionwise_partial(const SetsLog& log, double* scores, double* of_risk, double* of_variance, double* room);

}  // namespace kernels
}  // namespace o2
