#include "core/deciding.hpp"

#include <algorithm>
#include <utility>

#include "core/deciding_kernels.hpp"
#include "core/levels.hpp"

namespace o2 {
namespace {

const DecidingKernels& kernels() {
  static const DecidingKernels& found = O2_CHOSEN(deciding);
  return found;
}

int64_t padded(int64_t columns) { return (columns + SCORES_AT_ONCE - 1) / SCORES_AT_ONCE * SCORES_AT_ONCE; }

}  // namespace

std::shared_ptr<const ScoringGroup> scoring_group(const Plan& plan, int64_t K, const std::vector<int64_t>& members,
                                                  const std::vector<const double*>& weights) {
  auto made = std::make_shared<ScoringGroup>();
  const int64_t d = plan.d, m = plan.directions_of, padded_m = padded(m);
  made->d = d, made->directions_of = plan.products() ? m : 0, made->intercept = plan.intercept, made->clip = plan.clip;
  made->shift.assign(plan.shift.begin(), plan.shift.end()), made->scale.assign(plan.scale.begin(), plan.scale.end());
  made->product_shift.assign(plan.product_shift.begin(), plan.product_shift.end());
  made->product_scale.assign(plan.product_scale.begin(), plan.product_scale.end());
  made->directions.assign(d * padded_m, 0.0);
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < m; j++) made->directions[i * padded_m + j] = plan.directions[j * d + i];
  made->width = plan.width(), made->members = members;
  made->columns = padded(K * static_cast<int64_t>(members.size()));
  made->W.assign(made->width * made->columns, 0.0);
  for (size_t own = 0; own < members.size(); own++)
    for (int64_t q = 0; q < made->width; q++)
      for (int64_t k = 0; k < K; k++)
        made->W[q * made->columns + static_cast<int64_t>(own) * K + k] = weights[own][k * made->width + q];
  return made;
}

Scorer::Scorer(int64_t d, int64_t n_actions, int64_t members, std::vector<std::shared_ptr<const ScoringGroup>> groups)
    : d_(d), K_(n_actions), M_(members), groups_(std::move(groups)) {
  for (const auto& each : groups_) {
    widest_ = std::max(widest_, each->width);
    most_columns_ = std::max({most_columns_, each->columns, padded(each->directions_of)});
  }
}

// The features of one row. x [d], after the constant
void Scorer::features(const ScoringGroup& own, const float* inputs, double* row, ScoringRoom& room) const {
  double* x = row + own.intercept;
  row[0] = 1;  // overwritten if there is no intercept
  for (int64_t i = 0; i < d_; i++) {
    const double standardised = (static_cast<double>(inputs[i]) - own.shift[i]) * own.scale[i];
    x[i] = std::min(std::max(standardised, -own.clip), own.clip);
  }
  if (own.product_shift.empty()) return;
  const double* factors = x;
  int64_t m = d_;
  if (own.directions_of) {
    const int64_t columns = padded(own.directions_of);
    room.projected.resize(columns);
    kernels().weighted_sums(x, 1, d_, d_, own.directions.data(), columns, room.projected.data());
    factors = room.projected.data(), m = own.directions_of;
  }
  kernels().products(factors, m, own.product_shift.data(), own.product_scale.data(), x + d_);
}

void Scorer::scores(const float* inputs, int64_t n, double* out, int64_t of_member, int64_t of_row, ScoringRoom& room) const {
  const int64_t together = std::min<int64_t>(n, SCORED_TOGETHER);
  room.rows.resize(together * widest_);
  room.sums.resize(together * most_columns_);
  for (int64_t from = 0; from < n; from += together) {
    const int64_t some = std::min(together, n - from);
    for (const auto& each : groups_) {
      const ScoringGroup& own = *each;
      for (int64_t r = 0; r < some; r++) features(own, inputs + (from + r) * d_, room.rows.data() + r * own.width, room);
      kernels().weighted_sums(room.rows.data(), some, own.width, own.width, own.W.data(), own.columns, room.sums.data());
      for (int64_t r = 0; r < some; r++) {
        const double* sums = room.sums.data() + r * own.columns;
        for (size_t i = 0; i < own.members.size(); i++, sums += K_)
          std::copy(sums, sums + K_, out + own.members[i] * of_member + (from + r) * of_row);
      }
    }
  }
}

void Scorer::policy(const float* inputs, int64_t n, const Acting& acting, const Uncertainty* uncertainty, ScoringRoom& room) const {
  const int64_t among = n * K_;
  room.scores.resize(M_ * among);
  room.pi.resize(among);
  scores(inputs, n, room.scores.data(), among, K_, room);
  room.raw = room.scores;
  if (uncertainty && uncertainty->of_sets()) uncertainty->at_each(inputs, n, room.doubt);
  else if (uncertainty) uncertainty->at(inputs, room.doubt);
  acting_row(room.scores.data(), M_, among, among, uncertainty ? room.doubt.in(acting) : acting, room.pi.data());
}

}  // namespace o2
