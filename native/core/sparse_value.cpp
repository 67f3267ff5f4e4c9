#include "core/sparse_value.hpp"

#include <algorithm>

#include "core/threads.hpp"

namespace o2 {
namespace {

constexpr int64_t PANELS = 4;

}  // namespace

double SparseOutcomeValue::value(const double* params, int64_t n_params, double* gradient, int threads) {
  const int64_t size = n_params - 1, d = size / K_, n = rows_.n;
  const int64_t of_panel = std::max(settings_.panel, (n + PANELS - 1) / PANELS), panels = std::max<int64_t>((n + of_panel - 1) / of_panel, 1);
  const double tau = params[size], share = 1 / settings_.size, shrink = settings_.l2 / settings_.size;
  OutcomeTotals of[PANELS];
  room_.resize((panels - 1) * size);
  in_parallel(panels, threads, [&](int64_t panel) {
    double* own = panel ? room_.data() + (panel - 1) * size : gradient;
    std::fill_n(own, size, 0.0);
    const int64_t first = panel * of_panel, some = std::min(of_panel, n - first);
    const SparseOutcomeLog log{log_.actions + first, log_.rewards + first, log_.weights ? log_.weights + first : nullptr, log_.competing};
    of[panel] = sparse_outcome({rows_.indices, rows_.values, rows_.offsets + first, some}, log, {params, d, K_}, tau, {own, d, K_});
  });
  for (int64_t panel = 1; panel < panels; panel++) {
    of[0].loss += of[panel].loss, of[0].pulled += of[panel].pulled;
    const double* own = room_.data() + (panel - 1) * size;
    for (int64_t i = 0; i < size; i++) gradient[i] += own[i];
  }
  double value = of[0].loss * share + 0.5 * shrink * shrunk(params, size, settings_.size, shrink, gradient);
  gradient[size] = 0;
  if (log_.competing) {
    value += 0.5 * settings_.level_l2 * tau * tau * share;
    gradient[size] = (settings_.level_l2 * tau - of[0].pulled) * share;
  }
  return value;
}

}  // namespace o2
