#include "core/hashed_learner.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/sparse_value.hpp"

namespace o2 {

bool HashedFeatures::observe(const SparseColumns& log, const int64_t* sets, int64_t n) {
  if (n <= rows) return true;
  const auto end = [&](int64_t row) { return log.offsets[sets ? sets[row] : row]; };
  const int64_t first = end(rows), some = end(n) - first, known = slots();
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

void HashedScorer::scores(const SparseRows& rows, double* out, Room& room) const {
  const auto n = static_cast<int64_t>(rows.offsets.size()) - 1;
  const int64_t most = rows.offsets[n] - rows.offsets[0] + n;
  room.slots.resize(most), room.values.resize(most), room.offsets.resize(n + 1);
  to_slots(rows, slot_of.data(), scale->data(), static_cast<int64_t>(scale->size()) / 2, room.slots.data(), room.values.data(),
           room.offsets.data());
  const SparseColumns laid{room.slots.data(), room.values.data(), room.offsets.data(), n};
  for (const auto& each : weights) {
    sparse_scores(laid, {each->data(), (static_cast<int64_t>(each->size()) - 1) / K, K}, out);
    out += n * K;
  }
}

void HashedLearner::observe(int, int64_t n) {
  if (!features.observe(contexts, sets, n)) throw std::invalid_argument("log: found a feature beyond the table of slots");
  lay_out(n);
}

// New rows to slots and scaled values. Scales of numbers move with every row, and their entries with them.
void HashedLearner::lay_out(int64_t n) {
  const auto& plain = features.plain;
  const bool as_known = plain_.size() <= plain.size() && std::equal(plain_.data(), plain_.data() + plain_.size(), plain.data());
  if (!as_known) slots_.truncate(0), values_.truncate(0), offsets_.truncate(0), numbers_.truncate(0);  // a word is a number, too
  plain_.truncate(0), plain_.make_room(plain.size()), plain_.append(plain.data(), plain.size());
  for (const Number& each : numbers_.span()) values_[each.entry] = scaled(each.value, features.scale.data() + 2 * slots_[each.entry]);
  if (offsets_.size() == 0) offsets_.make_room(1), offsets_.push(0);
  const int64_t from = offsets_.size() - 1;
  int64_t entries = std::max<int64_t>(n - from, 0), at = offsets_[from];
  for (int64_t r = from; r < n; r++) entries += contexts.offsets[played_row(r) + 1] - contexts.offsets[played_row(r)];
  slots_.make_room(entries), values_.make_room(entries), offsets_.make_room(std::max<int64_t>(n - from, 0));
  for (int64_t r = from; r < n; r++) {
    const SparseRows row = played(r);
    int64_t ends[2];
    const int64_t made = to_slots(row, features.slot_of.data(), features.scale.data(), features.slots(), slots_.data() + at,
                                  values_.data() + at, ends);
    numbers_.make_room(made);
    for (int64_t j = 1; j < made; j++)  // all of its features have slots
      if (!plain[slots_[at + j]]) numbers_.push({at + j, row.values[row.offsets[0] + j - 1]});
    offsets_.push(at += made);
  }
  slots_.truncate(at), values_.truncate(at);
  rewards_.make_room(std::max<int64_t>(n - rewards_.size(), 0));
  for (int64_t r = rewards_.size(); r < n; r++) rewards_.push(static_cast<float>(fractions_[r]));
}

void HashedLearner::solve(LearnedMember& member, int64_t start, const double* weights) {
  const int64_t n = log_.n - start;
  if (weights) weights_.assign(weights, weights + n);
  const auto [total, level] = level_of(start, weights);
  if (sets) alone_.resize(n);
  const SparseOutcomeLog log{sets ? alone_.data() : log_.actions + start, rewards_.data() + start, weights ? weights_.data() : nullptr,
                             member.settings.competing};
  SparseOutcomeValue value({slots_.data(), values_.data(), offsets_.data() + start, n}, log, columns(),
                           {total, member.settings.l2, member.settings.level_l2, panel_});
  const int threads = n > panel_ ? threads_ : 1;
  descend_member(member, [&](auto& params, const Pairs& pairs, const Stop& stop) { return value.descend(params, pairs, stop, threads); },
                 total, level);
}

void HashedLearner::score(int64_t from, int64_t n, double* scores) {
  HashedScorer::Room room;
  for (int64_t r = 0; r < n; r++) scorer_->scores(played(from + r), scores + r * present() * columns(), room);
}

void HashedLearner::renew(const std::vector<bool>& changed) {
  HashedScorer made{features.slot_of, std::make_shared<const std::vector<float>>(features.scale), columns(), {}};
  for (int i = 0; i < present(); i++) {
    const bool same = scorer_ && !changed[i] && i < scorer_->members();
    made.weights.push_back(same ? scorer_->weights[i] : std::make_shared<const std::vector<double>>(members[i].params));
  }
  scorer_ = std::make_shared<const HashedScorer>(std::move(made));
}

}  // namespace o2
