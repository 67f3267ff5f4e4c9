#include "core/cells.hpp"

namespace o2 {

DrawnNumber draw_number(const double* probabilities, int64_t K, double uniform, const Bounds& within) {
  constexpr double EDGE = 1e-9;  // least distance to a cell's edge, relative to its width: rounding never changes the cell
  double below = 0.0;
  int64_t chosen = 0;
  for (int64_t k = 0; k < K; k++) {
    if (!(probabilities[k] > 0)) continue;
    chosen = k;  // rounding may leave the sum slightly below 1: the last possible cell gets the rest
    if (uniform < below + probabilities[k]) break;
    below += probabilities[k];
  }
  const double p = probabilities[chosen], left = std::min(std::max((uniform - below) / p, EDGE), 1 - EDGE);
  const double count = static_cast<double>(K), action = action_at((static_cast<double>(chosen) + left) / count, within);
  return {action, p * count / (within.ratio > 0 ? action * within.ratio : within.high - within.low)};
}

}  // namespace o2
