// From scores to decisions: mixture, sharpening, exploration, and the draw. See `o2pl.policies.sampling`:
//
//     p = (1 - ε) softmax(sharpness (log Σ_m ρ_m π_m + bonus)) + ε share,      π_m = softmax(scores_m)
#pragma once
#include <cstdint>

namespace o2 {

// How members' scores become the acting policy: `acting_numbers` of `o2pl.policies.sampling`, taken apart.
struct Acting {
  double sharpness, epsilon;
  const double *weights, *bonus, *share;  // ρ [M]; [K], or null: none, uniform

  Acting(const double* numbers, int64_t members);
};

// Replaces scores by softmax(sharpness · scores). [K]
void softmax_in_place(double* scores, int64_t K, double sharpness);

// The acting policy of one row, out [K]. scores [M], each [K], `stride` apart; they are overwritten.
void acting_row(double* scores, int64_t M, int64_t K, int64_t stride, const Acting& acting, double* out);

// One action, by inversion. Rounding may leave the sum slightly below 1: the last possible action gets the rest.
int64_t draw_one(const double* probabilities, int64_t K, double uniform);

}  // namespace o2
