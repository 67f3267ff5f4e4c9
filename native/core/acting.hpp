// From scores to decisions: mixture, exploration, and the draw. See `o2pl.policies.sampling`: policies are mixed and sharpened,
//
//     p = (1 - ε) softmax(sharpness (log Σ_m ρ_m π_m + bonus)) + ε share,      π_m = softmax(scores_m)
//
// or, with sharpness 0, rewards are predicted, and what is less certain than the leader * = arg max u is tried:
//
//     u = logit Σ_m ρ_m m_m + bonus,   q_a = Φ(-(u_* - u_a)/T_a),   T_a² = max(0, s_a² - s_*²) + .05²
//     p ∝ q/(1 - q), at least 1e-12; 1 for the leader, 0 for actions that were removed (u below -1e8)
#pragma once
#include <cstdint>
#include <vector>

namespace o2 {

constexpr int64_t PREDICTING = 4;  // numbers of a member, see below

// How members' scores become the acting policy: `acting_numbers` of `o2pl.policies.sampling`, taken apart.
struct Acting {
  double sharpness, epsilon;
  const double* weights;               // ρ [M]
  // [M, 4], with sharpness 0: whether actions compete, τ, level and slope. A member's m_m = σ(level + slope z), z = logit π(a) - τ
  // if actions compete, else score + τ.
  const double* predicting;
  const double *bonus, *share;         // [K], or null: none, uniform
  const double* variance = nullptr;    // s² [K], or null: all the same

  Acting(const double* numbers, int64_t members);
  bool predicts() const { return sharpness == 0; }
};

// What is uncertain in one row: variances and what exploration adds, [K] each; and a work array.
struct Doubt {
  std::vector<double> variance, bonus, room;

  explicit Doubt(int64_t K = 0) { resize(K); }
  void resize(int64_t K) { variance.resize(K), bonus.resize(K); }
  Acting in(Acting acting);  // its own bonus is added to this one, and left as it is
};

// Replaces scores by softmax(sharpness · scores). [K]
void softmax_in_place(double* scores, int64_t K, double sharpness);

// The acting policy of one row, out [K]. scores [M], each [K], `stride` apart; they are overwritten.
void acting_row(double* scores, int64_t M, int64_t K, int64_t stride, const Acting& acting, double* out);

// One action, by inversion. Rounding may leave the sum slightly below 1: the last possible action gets the rest.
int64_t draw_one(const double* probabilities, int64_t K, double uniform);

}  // namespace o2
