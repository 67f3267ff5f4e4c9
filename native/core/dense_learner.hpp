// `Learner` on rows of numbers, with linear softmax policies.
#pragma once
#include <memory>
#include <vector>

#include "core/dense.hpp"
#include "core/numeric_learner.hpp"

namespace o2 {

class DenseLearner final : public NumericLearner {
 public:
  // held: bytes of laid out rows that are kept between evaluations; panel_rows: of each state of features
  DenseLearner(int K, double low, double high, std::vector<MemberSettings> members, const WatchSettings& watch, Choices& choices,
               std::vector<RunningFeatures> features, std::vector<int64_t> panel_rows, int64_t held);

 protected:
  void solve(LearnedMember& member, int64_t start, const double* weights) override;
  void solved() override { laid_.reset(); }
  int64_t n_params(int which) const override;
  void score(int64_t from, int64_t n, double* scores) override;
  void renew(const std::vector<bool>& changed) override;

 private:
  std::vector<int64_t> panel_rows_;
  int64_t held_;
  std::shared_ptr<const DenseRows> laid_;  // those of the last solve: members that learn from the same rows share them
  int laid_features_ = -1;
  int64_t laid_start_ = 0;
  const double* laid_weights_ = nullptr;
  ScoringRoom room_;
};

}  // namespace o2
