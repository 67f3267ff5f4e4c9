// The penalty Φ_p, the clipping level α_t and the baseline b: `o2pl.objectives.penalty`, `.terms` and `o2pl.theory.schedules`.
#pragma once
#include <algorithm>
#include <cmath>

#include "core/math.hpp"

namespace o2 {

// λ Φ_p at round t; λ = `scale`. With α = ∞ (no clipping) the terms with α are dropped.
struct Phi {
  double alpha, t, log_inv_delta, p = 0, scale = 1;
};

struct ValueAndSlope {
  double value, slope;
};

// scale · Φ_p(σ, α, t, δ) and its derivative by the variance v = σ²:
//
//     Φ_p = (α/t)^{2/(2+p)} + σ^{1-p/2}/√t + σ √(log(1/δ)/t) + α log(1/δ)/t
//
// with σ √log(e + e/σ) for σ^{1-p/2} where p = 0. A σ below 1e-9 counts as that: Φ has a kink at 0.
static inline ValueAndSlope phi(double variance, const Phi& penalty) {
  const double t = penalty.t, p = penalty.p;
  const double alpha = penalty.alpha < std::numeric_limits<double>::infinity() ? penalty.alpha : 0.0;
  const double sigma = std::max(std::sqrt(variance), 1e-9);
  double local, local_slope, floor;
  if (p == 0) {
    const double root = std::sqrt(1.0 + log1p_of(1.0 / sigma));
    local = sigma * root;
    local_slope = root - 0.5 / (root * (1.0 + sigma));
    floor = alpha / t;
  } else {
    local = power_of(sigma, 1 - p / 2);
    local_slope = (1 - p / 2) * power_of(sigma, -p / 2);
    floor = power_of(alpha / t, 2 / (2 + p));
  }
  const double root_t = std::sqrt(t), root_log = std::sqrt(penalty.log_inv_delta);
  const double value = floor + (local + sigma * root_log) / root_t + alpha * penalty.log_inv_delta / t;
  const double slope = (local_slope + root_log) / root_t / (2 * sigma);  // dΦ/dv = dΦ/dσ / (2σ)
  return {penalty.scale * value, penalty.scale * slope};
}

// log(1/δ_t) for δ_t = δ / (t (t + 1)), which sums to δ over all rounds.
static inline double log_inverse_confidence(double t, double delta) { return log_of(t * (t + 1) / delta); }

// α_t of Theorem 1: 1 + log(e t) if the error-bound exponent β is 1, else 2 ∨ t^γ, γ = 2 (1 - β) / (2 (2 - β) + p).
static inline double clip_level(double t, double beta, double p) {
  constexpr double E = 2.718281828459045235;
  return beta == 1 ? 1 + log_of(E * t) : std::max(2.0, power_of(t, 2 * (1 - beta) / (2 * (2 - beta) + p)));
}

// Positions in `Pessimistic.numbers`. NaN: the theory's schedule (CLIP), the mean of the losses (BASELINE).
enum PessimisticNumber { CLIP, BETA, P, DELTA, PENALTY, BASELINE, L2, PESSIMISTIC_NUMBERS };

static inline double clip_at(const double* numbers, double t) {
  return std::isnan(numbers[CLIP]) ? clip_level(std::max(t, 1.0), numbers[BETA], numbers[P]) : numbers[CLIP];
}

static inline Phi penalty_at(const double* numbers, double t) {
  t = std::max(t, 1.0);
  return {clip_at(numbers, t), t, log_inverse_confidence(t, numbers[DELTA]), numbers[P], numbers[PENALTY]};
}

// The baseline b starts as if three best rewards had been seen: see `o2pl.objectives.terms`.
static inline double baseline_of_mean(double total_loss, double rows) {
  constexpr double PRIOR_ROWS = 3.0;
  return (total_loss - PRIOR_ROWS) / (rows + PRIOR_ROWS);
}

static inline double baseline_at(const double* numbers, double total_loss, double rows) {
  return std::isnan(numbers[BASELINE]) ? baseline_of_mean(total_loss, rows) : numbers[BASELINE];
}

}  // namespace o2
