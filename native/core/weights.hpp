// Importance weights w = π(a|x) / q and their clipping at α: the sums and cotangents of the pessimistic objective.
//
//     R̂ = mean (min(w, α) - 1) e,   σ̂² = mean (min(w, α) - 1)²,   e = y - b
//
// T is float or double; sums are kept in double. Eight sums side by side, added in order: they vectorise, and the bits are
// the same at every level of instructions. Every file has copies of its own: the linker must not merge those of levels.
#pragma once
#include <cstdint>

namespace o2 {
namespace {

struct ClippedSums {
  double risk, variance;  // n R̂ and n σ̂²
};

template <class T>
inline ClippedSums clipped_sums(const T* weights, const T* residuals, int64_t n, T alpha) {
  const double limit = static_cast<double>(alpha);
  constexpr int64_t LANES = 8;
  double risk[LANES] = {}, variance[LANES] = {};
  const auto add = [&](int64_t s, int64_t lane) {
    const double w = static_cast<double>(weights[s]), residual = static_cast<double>(residuals[s]);
    const double centred = (w < limit ? w : limit) - 1.0;
    risk[lane] += centred * residual;
    variance[lane] += centred * centred;
  };
  int64_t first = 0;
  for (; first + LANES <= n; first += LANES)
    for (int64_t lane = 0; lane < LANES; lane++) add(first + lane, lane);
  for (int64_t s = first; s < n; s++) add(s, s - first);
  ClippedSums sums{0, 0};
  for (int lane = 0; lane < LANES; lane++) {
    sums.risk += risk[lane];
    sums.variance += variance[lane];
  }
  return sums;
}

// 1{w < α} w e, of the risk, and 2 · 1{w < α} w (w - 1), of the variance; w may be infinite.
template <class T>
inline void cotangent_parts(T w, T residual, T alpha, T& of_loss, T& of_weight) {
  const T live = w < alpha ? w : T(0);
  const T away = live * (live - T(1));
  of_loss = live * residual;
  of_weight = away + away;
}

// Replaces w by ∂(R̂ + Φ)/∂ log π_s = 1{w < α} w (e + 2 Φ'(σ̂²) (w - 1)) / n: no gradient where clipped.
// `size` is the length of the log, n or more.
template <class T>
inline void weight_cotangent(T* weights, const T* residuals, int64_t n, T alpha, double slope, double size) {
  const T share = static_cast<T>(1 / size), steepness = static_cast<T>(slope);
  for (int64_t s = 0; s < n; s++) {
    T of_loss, of_weight;
    cotangent_parts(weights[s], residuals[s], alpha, of_loss, of_weight);
    weights[s] = (of_loss + steepness * of_weight) * share;
  }
}

// Like `weight_cotangent`, before Φ'(σ̂²) is known: the cotangent is of_losses + Φ' of_weights. None of the arrays overlap.
template <class T>
inline void split_cotangent(const T* weights, const T* residuals, int64_t n, T alpha, double size, T* __restrict of_losses,
                            T* __restrict of_weights) {
  const T share = static_cast<T>(1 / size);
  for (int64_t s = 0; s < n; s++) {
    T of_loss, of_weight;
    cotangent_parts(weights[s], residuals[s], alpha, of_loss, of_weight);
    of_losses[s] = of_loss * share;
    of_weights[s] = of_weight * share;
  }
}

}  // namespace
}  // namespace o2
