// Recursive least squares with posterior draws: see `o2pl.oracles.recursive`. With z a row of the design,
// P = (l2 I + Σ z zᵀ)⁻¹ and g = P z / (1 + zᵀ P z), an additional row gives
//
//     θ ← θ + g (r - zᵀθ),      P ← P - g zᵀP,      d_s ← d_s + g (ξ_s - zᵀd_s),  ξ_s = ±1
#pragma once
#include <cstdint>

namespace o2 {

// The state, in place. P [D, D]: its lower triangle is used; deviations [S, D]; noise: Σ squares, and rows.
struct Recursion {
  int64_t D, S;
  double *P, *theta, *deviations, *noise;
};

// A pseudo-random sign ±1 of a row and a draw; always the same for the same row.
static inline double sign_of(int64_t row, int64_t draw) {
  uint64_t x = (static_cast<uint64_t>(row) * 4096 + static_cast<uint64_t>(draw) + 1) * 0x9E3779B97F4A7C15ull;  // splitmix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return (x >> 33) & 1 ? 1.0 : -1.0;
}

}  // namespace o2
