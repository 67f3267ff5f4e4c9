#include "core/hashed_learner.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/sparse_value.hpp"

namespace o2 {

bool HashedFeatures::observe(const SparseColumns& log, int64_t n) {
  if (n <= rows) return true;
  const int64_t first = log.offsets[rows], some = log.offsets[n] - first, known = slots();
  const std::span<const int32_t> indices(log.indices + first, some);
  const int64_t now = number_features(indices, slot_of, known);
  if (now < 0) return false;
  feature.resize(now), count.resize(now), mean.resize(now), squares.resize(now), scale.resize(2 * now);
  plain.make_room(now - known);
  for (int64_t i = known; i < now; i++) plain.push(true), scale[2 * i + 1] = 1;
  if (!scale_features(indices, log.values + first, slot_of, now,
                      {feature.data(), count.data(), mean.data(), squares.data(), plain.data(), scale.data()}))
    return false;
  rows = n;
  return true;
}

void HashedScorer::scores(const int32_t* indices, const float* values, int64_t n, double* out, Room& room) const {
  room.slots.resize(n + 1), room.values.resize(n + 1);
  const int64_t ends[] = {0, n};
  int64_t offsets[2];
  to_slots({{indices, static_cast<size_t>(n)}, values, ends}, slot_of.data(), scale->data(), static_cast<int64_t>(scale->size()) / 2,
           room.slots.data(), room.values.data(), offsets);
  for (const auto& each : weights) {
    sparse_scores({room.slots.data(), room.values.data(), offsets, 1}, {each->data(), (static_cast<int64_t>(each->size()) - 1) / K, K}, out);
    out += K;
  }
}

void HashedLearner::observe(int, int64_t n) {
  if (!features.observe(contexts, n)) throw std::invalid_argument("log: found a feature beyond the table of slots");
  lay_out(n);
}

// Rows to slots and scaled values. Scales of numbers move with every row, then all rows are laid out again.
void HashedLearner::lay_out(int64_t n) {
  const bool words = std::all_of(features.plain.data(), features.plain.data() + features.slots(), [](bool each) { return each; });
  if (!words) slots_.truncate(0), values_.truncate(0), offsets_.truncate(0);
  if (offsets_.size() == 0) offsets_.make_room(1), offsets_.push(0);
  const int64_t from = offsets_.size() - 1, first = offsets_[from];
  if (from < n) {
    const int64_t entries = contexts.offsets[n] - contexts.offsets[from] + n - from;
    slots_.make_room(entries), values_.make_room(entries), offsets_.make_room(n - from);
    const SparseRows rows{{contexts.indices, static_cast<size_t>(contexts.offsets[n])}, contexts.values,
                          {contexts.offsets + from, static_cast<size_t>(n - from + 1)}};
    offsets_.truncate(from);
    const int64_t made = to_slots(rows, features.slot_of.data(), features.scale.data(), features.slots(), slots_.data() + first,
                                  values_.data() + first, offsets_.data() + from);
    for (int64_t r = from; r <= n; r++) offsets_[r] += first;
    slots_.truncate(first + made), values_.truncate(first + made), offsets_.truncate(n + 1);
  }
  rewards_.make_room(std::max<int64_t>(n - rewards_.size(), 0));
  for (int64_t r = rewards_.size(); r < n; r++) rewards_.push(static_cast<float>(fractions_[r]));
}

void HashedLearner::solve(LearnedMember& member, int64_t start, const double* weights) {
  const int64_t n = log_.n - start;
  if (weights) weights_.assign(weights, weights + n);
  const auto [total, level] = level_of(start, weights);
  const SparseOutcomeLog log{log_.actions + start, rewards_.data() + start, weights ? weights_.data() : nullptr, member.settings.competing};
  SparseOutcomeValue value({slots_.data(), values_.data(), offsets_.data() + start, n}, log, K_,
                           {total, member.settings.l2, member.settings.level_l2, panel_});
  const int threads = n > panel_ ? threads_ : 1;
  descend_member(member, [&](auto& params, const Pairs& pairs, const Stop& stop) { return value.descend(params, pairs, stop, threads); },
                 total, level);
}

void HashedLearner::predict(int64_t from, int64_t n, double* z, int64_t stride) {
  const int M = present();
  std::vector<double> scores(static_cast<size_t>(M) * K_);
  HashedScorer::Room room;
  for (int64_t r = 0; r < n; r++) {
    const int64_t first = contexts.offsets[from + r];
    scorer_->scores(contexts.indices + first, contexts.values + first, contexts.offsets[from + r + 1] - first, scores.data(), room);
    for (int i = 0; i < M; i++)
      z[i * stride + r] = played_log_odds(scores.data() + static_cast<int64_t>(i) * K_, K_, log_.actions[from + r],
                                          members[i].settings.competing, members[i].params.back());
  }
}

void HashedLearner::renew(const std::vector<bool>& changed) {
  HashedScorer made{features.slot_of, std::make_shared<const std::vector<float>>(features.scale), K_, {}};
  for (int i = 0; i < present(); i++) {
    const bool same = scorer_ && !changed[i] && i < scorer_->members();
    made.weights.push_back(same ? scorer_->weights[i] : std::make_shared<const std::vector<double>>(members[i].params));
  }
  scorer_ = std::make_shared<const HashedScorer>(std::move(made));
}

}  // namespace o2
