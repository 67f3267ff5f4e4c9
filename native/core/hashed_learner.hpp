// `Learner` on sparse rows of hashed features, with linear softmax policies; or on action sets, with a row for each action.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/buffer.hpp"
#include "core/hashing.hpp"
#include "core/learner.hpp"
#include "core/sparse.hpp"

namespace o2 {

// The running state of `Hashed` of `o2pl.features`. See `SlotMoments`.
struct HashedFeatures {
  std::span<int32_t> slot_of;  // [2^bits]; somebody else's
  int64_t rows = 0;            // of the log, observed so far
  std::vector<int32_t> feature;
  std::vector<double> count, mean, squares;
  Buffer<bool> plain;
  std::vector<float> scale;  // [slots, 2]

  int64_t slots() const { return static_cast<int64_t>(feature.size()); }
  // Observes the log up to n rows; sets: the first of its sparse rows that belongs to each, or null: one each. False: an
  // index is beyond the table.
  bool observe(const SparseColumns& log, const int64_t* sets, int64_t n);
};

// What members score rows with: those of one moment. Weights [d, K], flattened, then τ; features beyond d are ignored.
class HashedScorer {
 public:
  // Work arrays; one per thread.
  struct Room {
    std::vector<int32_t> slots;
    std::vector<float> values;
    std::vector<int64_t> offsets;
  };

  std::span<const int32_t> slot_of;
  std::shared_ptr<const std::vector<float>> scale;  // (shift, factor) of its slots
  int64_t K;
  std::vector<std::shared_ptr<const std::vector<double>>> weights;

  int64_t members() const { return static_cast<int64_t>(weights.size()); }
  void scores(const SparseRows& rows, double* out, Room& room) const;  // out [members, rows, K]
};

class HashedLearner final : public Learner {
 public:
  // K: 0 for action sets, whose actions are independent and share their weights. panel: rows of a panel, at least: see
  // `SparseOutcomeSettings`
  HashedLearner(int K, double low, double high, std::vector<MemberSettings> members, const WatchSettings& watch, Choices& choices,
                int64_t panel)
      : Learner(K, low, high, std::move(members), watch, choices, 0), panel_(panel) {
    if (K == 0) curvature = Curvature(1, 0);
  }

  HashedFeatures features;
  SparseColumns contexts{};       // of the log, set before `learn` and `resume`
  const int64_t* sets = nullptr;  // the first row of each action set; null: a context is one row
  // Before the state is replaced.
  void forget_rows() { slots_ = {}, values_ = {}, offsets_ = {}, numbers_ = {}, plain_ = {}, rewards_ = {}; }
  const std::shared_ptr<const HashedScorer>& scorer() const { return scorer_; }

 protected:
  void observe(int which, int64_t n) override;
  void solve(LearnedMember& member, int64_t start, const double* weights) override;
  void solved() override {}
  int64_t n_params(int) const override { return features.slots() * columns() + 1; }
  void score(int64_t from, int64_t n, double* scores) override;
  void renew(const std::vector<bool>& changed) override;
  bool knows_rows() const override { return sets || Learner::knows_rows(); }
  void add_curvature(int64_t from, int64_t n, const double* h) override {
    if (sets) alone_.assign(n, 0);
    curvature.add(SparseColumns{slots_.data(), values_.data(), offsets_.data() + from, n}, features.slots(),
                  sets ? alone_.data() : log_.actions + from, h);
  }
  std::shared_ptr<const Uncertainty> make_uncertainty() const override { return curvature.uncertainty({{}, {}, 0}); }

 private:
  struct Number {  // an entry that is scaled
    int64_t entry;
    float value;  // as in the log
  };

  int64_t panel_;
  Buffer<int32_t> slots_;    // of all rows that were learned from, each with the constant first; of sets, the played ones
  Buffer<float> values_;
  Buffer<int64_t> offsets_;
  Buffer<Number> numbers_;
  Buffer<bool> plain_;  // of slots, as they were
  Buffer<float> rewards_;
  std::vector<float> weights_;
  std::vector<int64_t> alone_;  // actions of sets: each is the only one of its row
  std::shared_ptr<const HashedScorer> scorer_;

  int64_t columns() const { return std::max(K_, 1); }  // of weights
  int64_t played_row(int64_t r) const { return sets ? sets[r] + log_.actions[r] : r; }
  SparseRows played(int64_t r) const {  // the row of a context, or of its played action
    const int64_t* ends = contexts.offsets + played_row(r);
    return {{contexts.indices, static_cast<size_t>(ends[1])}, contexts.values, {ends, 2}};
  }
  void lay_out(int64_t n);
};

}  // namespace o2
