#include "core/outcome.hpp"

#include <algorithm>

#include "core/levels.hpp"
#include "core/math.hpp"

namespace o2 {

PredictionSums prediction_sums(const double* z, const double* rewards, int64_t n, double level, double slope) {
  PredictionSums sums{};
  at_level([&](auto L) { kernels::prediction_sums<L>(z, rewards, n, level, slope, sums); });
  return sums;
}

Watched watched(const Watched& before, const double* z, const double* rewards, int64_t n, double memory, double block) {
  constexpr double TURN = 0.1;  // largest change of the slope in a block
  const auto within = [](double x, double limit) { return std::min(std::max(x, -limit), limit); };
  const PredictionSums sums = prediction_sums(z, rewards, n, before.level, 1 + before.turn);
  const double rows = static_cast<double>(n), of_score = exp_of(-rows / memory), of_curvature = exp_of(-rows / block);
  const double h = of_curvature * before.h + sums.h, hz = of_curvature * before.hz + sums.hz;
  const double hzz = of_curvature * before.hzz + sums.hzz;
  const double step = ((h + 1) * sums.by_slope - hz * sums.by_level) / ((h + 1) * (hzz + 1) - hz * hz);
  const double turn = within(before.turn + within(step, TURN), 1.0), slope = turn - before.turn;
  const double level = before.level + within((sums.by_level - hz * slope) / (h + 1), 1.0);
  return {of_score * before.score + sums.likelihood, level, turn, h, hz, hzz};
}

WeightedSums weighted_sums(const double* values, const double* weights, int64_t n, WeightedSums sums) {
  for (int64_t r = 0; r < n; r++) {
    const double w = weights ? weights[r] : 1.0;
    sums.weights += w, sums.values += w * values[r];
  }
  return sums;
}

void played_log_odds(const double* scores, int64_t K, const int64_t* actions, double tau, double* out) {
  at_level([&](auto L) { kernels::played_log_odds<L>(scores, K, actions, tau, out); });
}

void mean_curvature(const double* z, int64_t M, int64_t n, int64_t stride, const double* weights, double* h) {
  at_level([&](auto L) { kernels::mean_curvature<L>(z, M, n, stride, weights, h); });
}

}  // namespace o2
