// Recursive least squares on sparse rows, one model per action: `o2pl.objectives.running_control`.
#pragma once
#include <cstdint>

#include "core/sparse.hpp"

namespace o2 {

// Weights and their variances, [slots, K]; a variance of 0 means the prior's.
struct RunningModel {
  float *weights, *spread;
  int64_t slots, K;
  double prior;
  double total;       // Σ losses so far
  int64_t rows;       // rows so far
};

// Predicts y - b of every action from the rows before, predicted [n, K], and updates with error e = y - b - w x and
// variance v_j of weight j: g = v x / (1 + Σ v x²), w += g e, v -= g v x. numbers: `Pessimistic.numbers`
void predict_losses(const SparseColumns& rows, const int64_t* actions, const double* losses, const double* numbers,
                    RunningModel& model, float* predicted);

namespace kernels {  // once per level of instructions

template <int LEVEL>
void predict_row(const SparseColumns& rows, int64_t row, const RunningModel& model, float* predicted);

}  // namespace kernels
}  // namespace o2
