// Sums over the rows of a log for confidence intervals: `o2pl.evaluation.intervals`. Eight sums side by side, in order.
#pragma once
#include <cstdint>

namespace o2 {

struct ShiftedSums {
  double total, squares;  // Σ (x - first) and Σ (x - first)²
};

struct Weighed {
  double size, squares, least, most;  // Σ |w|, Σ w², and the smallest and largest surprise
};

struct SumKernels {
  ShiftedSums (*shifted)(const double* values, int64_t n, double first);
  // surprises r - m; without a model (null), r
  Weighed (*weighed)(const double* weights, const double* rewards, const double* modelled, int64_t n);
};

extern const SumKernels sums_1, sums_2, sums_3;  // of each level
const SumKernels& sum_kernels();                 // of this machine's level

}  // namespace o2
