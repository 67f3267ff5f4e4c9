#include "core/sparse_value.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "core/shrinking.hpp"
#include "core/threads.hpp"

namespace o2 {
namespace {

constexpr int64_t PANELS = 4;

}  // namespace

double SparseOutcomeValue::value(const double* params, int64_t n_params, double* gradient, int threads) {
  if (K_ == 1 && !log_.competing && !log_.known && features_ < 0) {
    features_ = 0;
    for (int64_t j = rows_.offsets[0]; j < rows_.offsets[rows_.n]; j++)  // a negative one is large, too
      features_ = std::max<int64_t>(features_, int64_t{static_cast<uint32_t>(rows_.indices[j])} + 1);
  }
  const int64_t size = n_params - 1, d = size / K_, n = rows_.n;
  const int64_t of_panel = std::max(settings_.panel, (n + PANELS - 1) / PANELS), panels = std::max<int64_t>((n + of_panel - 1) / of_panel, 1);
  const double tau = params[size], share = 1 / settings_.size, shrink = settings_.l2 / settings_.size;
  const bool known = log_.known || (K_ == 1 && !log_.competing && features_ <= d);
  OutcomeTotals of[PANELS];
  room_.resize((panels - 1) * size);
  in_parallel(panels, threads, [&](int64_t panel) {
    double* own = panel ? room_.data() + (panel - 1) * size : gradient;
    std::fill_n(own, size, 0.0);
    const int64_t first = panel * of_panel, some = std::min(of_panel, n - first);
    const SparseOutcomeLog log{log_.actions ? log_.actions + first : nullptr, log_.rewards + first, log_.weights ? log_.weights + first : nullptr,
                               log_.competing, known};
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

Descent SparseOutcomeValue::descend(std::vector<double>& params, const Pairs& pairs, const Stop& stop, int threads) {
  const int64_t size = static_cast<int64_t>(params.size()) - 1, d = size / K_, n = rows_.n, first = rows_.offsets[0];
  if (log_.competing || size > std::numeric_limits<int32_t>::max())
    return o2::descend([&](const double* x, double* g) { return value(x, size + 1, g, threads); }, params, pairs, stop);
  const int64_t count = rows_.offsets[n] - first;
  std::vector<int32_t> place(size);
  const auto entries = std::make_unique_for_overwrite<int32_t[]>(count), of = std::make_unique_for_overwrite<int32_t[]>(size + 1);
  std::vector<int64_t> offsets(rows_.offsets, rows_.offsets + n + 1);
  for (int64_t& each : offsets) each -= first;
  bool known = true;
  for (int64_t r = 0; r < n; r++)
    for (int64_t j = offsets[r]; j < offsets[r + 1]; j++) {
      const int64_t i = rows_.indices[first + j];
      const bool own = i >= 0 && i < d;
      entries[j] = own ? static_cast<int32_t>(i * K_ + log_.actions[r]) : -1, known = known && own;
      if (own) place[entries[j]] = 1;
    }
  int64_t few = 0;
  for (int64_t i = 0; i < size; i++) {  // without branches, which nothing could predict
    const bool moves = (place[i] != 0) | (params[i] != 0);
    place[i] = static_cast<int32_t>(few), of[few] = static_cast<int32_t>(i);
    few += moves;
  }
  of[few++] = static_cast<int32_t>(size);
  for (int64_t j = 0; j < count; j++)
    if (entries[j] >= 0) entries[j] = place[entries[j]];
  std::vector<double> own(few);
  const auto steps = std::make_unique_for_overwrite<float[]>(pairs.memory * few), changes = std::make_unique_for_overwrite<float[]>(pairs.memory * few);
  for (int64_t i = 0; i < few; i++) own[i] = params[of[i]];
  for (int64_t k = 0; k < pairs.memory; k++)
    for (int64_t i = 0; i < few; i++) {
      steps[k * few + i] = pairs.steps[k * pairs.stride + of[i]];
      changes[k * few + i] = pairs.changes[k * pairs.stride + of[i]];
    }
  const std::vector<int64_t> alone(known ? 0 : n);
  const SparseOutcomeLog log{known ? nullptr : alone.data(), log_.rewards, log_.weights, false, known};
  SparseOutcomeValue played({entries.get(), rows_.values + first, offsets.data(), n}, log, 1, settings_);
  const Descent done = o2::descend([&](const double* x, double* g) { return played.value(x, few, g, threads); }, own,
                                   {pairs.memory, few, few, steps.get(), changes.get(), pairs.inner, pairs.at, pairs.count}, stop);
  for (int64_t i = 0; i < few; i++) params[of[i]] = own[i];
  for (int64_t k = 0; k < pairs.memory; k++)  // all others have been 0 so far
    for (int64_t i = 0; i < few; i++) {
      pairs.steps[k * pairs.stride + of[i]] = steps[k * few + i];
      pairs.changes[k * pairs.stride + of[i]] = changes[k * few + i];
    }
  return done;
}

}  // namespace o2
