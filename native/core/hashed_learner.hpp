// `Learner` on sparse rows of hashed features, with linear softmax policies.
#pragma once
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
  // Observes rows up to n. False: an index is beyond the table.
  bool observe(const SparseColumns& log, int64_t n);
};

// What members score rows with: those of one moment. Weights [d, K], flattened, then τ; features beyond d are ignored.
class HashedScorer {
 public:
  // Work arrays; one per thread.
  struct Room {
    std::vector<int32_t> slots;
    std::vector<float> values;
  };

  std::span<const int32_t> slot_of;
  std::shared_ptr<const std::vector<float>> scale;  // (shift, factor) of its slots
  int64_t K;
  std::vector<std::shared_ptr<const std::vector<double>>> weights;

  int64_t members() const { return static_cast<int64_t>(weights.size()); }
  // out [members, K]; n entries of one row
  void scores(const int32_t* indices, const float* values, int64_t n, double* out, Room& room) const;
};

class HashedLearner final : public Learner {
 public:
  // panel: rows of a panel, at least: see `SparseOutcomeSettings`
  HashedLearner(int K, double low, double high, std::vector<MemberSettings> members, const WatchSettings& watch, Choices& choices,
                int64_t panel)
      : Learner(K, low, high, std::move(members), watch, choices), panel_(panel) {}

  HashedFeatures features;
  SparseColumns contexts{};  // of the log, set before `learn` and `resume`
  void forget_rows() { slots_ = {}, values_ = {}, offsets_ = {}, rewards_ = {}; }  // before the state is replaced
  const std::shared_ptr<const HashedScorer>& scorer() const { return scorer_; }

 protected:
  void observe(int which, int64_t n) override;
  void solve(LearnedMember& member, int64_t start, const double* weights) override;
  void solved() override {}
  int64_t n_params(int) const override { return features.slots() * K_ + 1; }
  void predict(int64_t from, int64_t n, double* z, int64_t stride) override;
  void renew(const std::vector<bool>& changed) override;

 private:
  int64_t panel_;
  Buffer<int32_t> slots_;    // of all rows that were learned from, each with the constant first
  Buffer<float> values_;
  Buffer<int64_t> offsets_;
  Buffer<float> rewards_;
  std::vector<float> weights_;
  std::shared_ptr<const HashedScorer> scorer_;

  void lay_out(int64_t n);
};

}  // namespace o2
