// Softmax of many scores, compiled per level of instructions.
#pragma once
#include <cstdint>

namespace o2 {

struct ActingKernels {
  void (*softmax)(double* scores, int64_t K, double sharpness);
  // out [K] = log Σ_m ρ_m π_m; scores [M], each [K], `stride` apart; they become the π_m
  void (*mix)(double* scores, int64_t M, int64_t K, int64_t stride, const double* weights, double* out);
  // out [K] = log-odds of Σ_m ρ_m m_m; scores as above, they are overwritten; predicting [M, 4]: see `Acting`
  void (*predict)(double* scores, int64_t M, int64_t K, int64_t stride, const double* weights, const double* predicting, double* out);
};

extern const ActingKernels acting_1, acting_2, acting_3;

}  // namespace o2
