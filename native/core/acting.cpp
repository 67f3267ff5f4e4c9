#include "core/acting.hpp"

#include <algorithm>
#include <cmath>

#include "core/acting_kernels.hpp"
#include "core/levels.hpp"
#include "core/special.hpp"

namespace o2 {
namespace {

const ActingKernels& kernels() {
  static const ActingKernels& found = O2_CHOSEN(acting);
  return found;
}

constexpr double LEAST_VARIANCE = 0.05 * 0.05, LEAST_ODDS = 1e-12;
constexpr double ABSENT = -1e8;  // log-odds of actions that were removed: `Without` of `o2pl.policies.sampling`
constexpr double FARTHEST = 7.0345;  // Φ(-x) is below LEAST_ODDS from here on

// Log-odds of the predicted rewards become probabilities. variance [K], or null: all the same
void by_excess(double* u, const double* variance, int64_t K) {
  int64_t leader = 0;
  for (int64_t k = 1; k < K; k++)
    if (u[k] > u[leader]) leader = k;
  const double top = u[leader];
  double total = 0;
  for (int64_t k = 0; k < K; k++) {
    const double excess = variance ? std::max(variance[k] - variance[leader], 0.0) : 0.0;
    const double x = (top - u[k]) / std::sqrt(excess + LEAST_VARIANCE);
    double odds = k == leader ? 1.0 : u[k] < ABSENT ? 0.0 : LEAST_ODDS;
    if (k != leader && x < FARTHEST) {
      const double q = ndtr(-x);
      odds = std::max(q / (1 - q), LEAST_ODDS);
    }
    total += u[k] = odds;
  }
  for (int64_t k = 0; k < K; k++) u[k] /= total;
}

}  // namespace

Acting::Acting(const double* numbers, int64_t members) : sharpness(numbers[0]), epsilon(numbers[1]) {
  const auto n_bonus = static_cast<int64_t>(numbers[2]), n_share = static_cast<int64_t>(numbers[3]);
  weights = numbers + 4;
  predicting = weights + members;
  const double* rest = weights + members * (predicts() ? 1 + PREDICTING : 1);
  bonus = n_bonus > 0 ? rest : nullptr;
  share = n_share > 0 ? rest + n_bonus : nullptr;
}

Acting Doubt::in(Acting acting) {
  for (size_t k = 0; acting.bonus && k < bonus.size(); k++) bonus[k] += acting.bonus[k];
  acting.variance = variance.data(), acting.bonus = bonus.data();
  return acting;
}

void softmax_in_place(double* scores, int64_t K, double sharpness) {
  kernels().softmax(scores, K, sharpness);
}

void acting_row(double* scores, int64_t M, int64_t K, int64_t stride, const Acting& acting, double* out) {
  if (acting.predicts()) {
    kernels().predict(scores, M, K, stride, acting.weights, acting.predicting, out);
  } else if (M == 1) {
    std::copy(scores, scores + K, out);
  } else {
    kernels().mix(scores, M, K, stride, acting.weights, out);
  }
  if (acting.bonus)
    for (int64_t k = 0; k < K; k++) out[k] += acting.bonus[k];
  if (acting.predicts()) by_excess(out, acting.variance, K);
  else softmax_in_place(out, K, acting.sharpness);
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
