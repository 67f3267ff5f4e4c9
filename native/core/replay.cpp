#include "core/replay.hpp"

#include <algorithm>
#include <vector>

#include "core/vector_kernels.hpp"

namespace o2 {

void replay(const float* X, const int64_t* actions, const double* losses, const double* propensities, int64_t n, int64_t d,
            int64_t K, const double* numbers, const AdamState& adam) {
  const int64_t rows = in_sixteens(n), columns = in_sixteens(d);
  std::vector<float> held(rows * columns + d * rows + 3 * rows);
  float *by_row = held.data(), *by_column = by_row + rows * columns, *action = by_column + d * rows;
  float *residuals = action + rows, *inverse = residuals + rows;
  double total = 0.0;
  for (int64_t r = 0; r < n; r++) total += losses[r];
  const double size = static_cast<double>(n), baseline = baseline_at(numbers, total, size);
  for (int64_t r = 0; r < n; r++) {
    action[r] = static_cast<float>(actions[r]);
    residuals[r] = static_cast<float>(losses[r] - baseline);
    inverse[r] = static_cast<float>(std::min(1 / propensities[r], 3e38));
    for (int64_t i = 0; i < d; i++) by_row[r * columns + i] = by_column[i * rows + r] = X[r * d + i];
  }
  const Window window = {n, d, K, rows, columns, by_row, by_column, action, residuals, inverse};
  vector_kernels().replay(window, {clip_at(numbers, size), penalty_at(numbers, size), numbers[L2] / size}, adam);
}

}  // namespace o2
