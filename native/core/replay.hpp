// The paper's replay: steps of Adam on the pessimistic objective of a linear softmax, on a window of rows.
#pragma once
#include <cstdint>

#include "core/penalty.hpp"

namespace o2 {

// Rows of the window, padded to whole vectors of 16 by rows and features of zeros; all [rows] but features and K.
struct Window {
  int64_t n, d, K;             // rows, features, actions
  int64_t rows, columns;       // n and d rounded up
  const float *X, *X_by_column;  // [rows, columns], [d, rows]
  const float *actions, *residuals, *inverse;  // e = y - b; 1/q; numbers of actions
};

// Parameters and both moments, in place: [K d] each, and the number of steps.
struct AdamState {
  double *params, *first, *second;
  int64_t* count;
  int64_t steps;  // to take
  double step_size;
};

// What the objective needs besides the rows: the clipping level, the penalty, and l2 / n.
struct Pessimism {
  double alpha;
  Phi penalty;
  double shrink;
};

static inline int64_t in_sixteens(int64_t n) { return (n + 15) / 16 * 16; }

// The steps on these rows: X [n, d], actions, losses and propensities [n]. numbers: `Pessimistic.numbers`
void replay(const float* X, const int64_t* actions, const double* losses, const double* propensities, int64_t n, int64_t d,
            int64_t K, const double* numbers, const AdamState& adam);

}  // namespace o2
