#include "core/acting.hpp"

#include <algorithm>

#include "core/acting_kernels.hpp"
#include "core/levels.hpp"

namespace o2 {
namespace {

const ActingKernels& kernels() {
  static const ActingKernels& found = O2_CHOSEN(acting);
  return found;
}

}  // namespace

Acting::Acting(const double* numbers, int64_t members) : sharpness(numbers[0]), epsilon(numbers[1]) {
  const auto n_bonus = static_cast<int64_t>(numbers[2]), n_share = static_cast<int64_t>(numbers[3]);
  weights = numbers + 4;
  bonus = n_bonus > 0 ? weights + members : nullptr;
  share = n_share > 0 ? weights + members + n_bonus : nullptr;
}

void softmax_in_place(double* scores, int64_t K, double sharpness) {
  kernels().softmax(scores, K, sharpness);
}

void acting_row(double* scores, int64_t M, int64_t K, int64_t stride, const Acting& acting, double* out) {
  if (M == 1) {
    std::copy(scores, scores + K, out);
  } else {
    kernels().mix(scores, M, K, stride, acting.weights, out);
  }
  if (acting.bonus)
    for (int64_t k = 0; k < K; k++) out[k] += acting.bonus[k];
  softmax_in_place(out, K, acting.sharpness);
  const double uniform = 1.0 / static_cast<double>(K);
  for (int64_t k = 0; k < K; k++) {
    const double mixed = (1 - acting.epsilon) * out[k] + acting.epsilon * (acting.share ? acting.share[k] : uniform);
    out[k] = std::min(mixed, 1.0);
  }
}

int64_t draw_one(const double* probabilities, int64_t K, double uniform) {
  double below = 0;
  int64_t drawn = 0;
  for (int64_t k = 0; k < K; k++) {
    if (probabilities[k] > 0) {
      drawn = k;
      below += probabilities[k];
      if (uniform < below) break;
    }
  }
  return drawn;
}

}  // namespace o2
