// `Learner` of one member with a normal policy and the pessimistic objective, on rows of numbers, with a ridge regression as
// control variate. See `o2pl.policies.gaussian`, `o2pl.objectives.pessimistic` and `o2pl.objectives.control`.
#pragma once
#include <vector>

#include "core/gaussian.hpp"
#include "core/numeric_learner.hpp"

namespace o2 {

struct NormalSettings {
  double centre, scale;
  double ridge, baseline;  // of the control variate; see `ridge_baseline`
  int64_t panel_rows, held;  // see `DenseRows`
};

class GaussianLearner final : public NumericLearner {
 public:
  GaussianLearner(double low, double high, const MemberSettings& member, Choices& choices, std::vector<RunningFeatures> features,
                  const NormalSettings& settings);

  Drawing drawing() const override { return {Drawing::Kind::normal, {}, settings_.centre, settings_.scale}; }

 protected:
  void solve(LearnedMember& member, int64_t start, const double* weights) override;
  void solved() override {}
  int64_t n_params(int which) const override { return features[which].plan().width(); }
  void score(int64_t, int64_t, double*) override {}  // a single member is not weighted
  void renew(const std::vector<bool>& changed) override;

 private:
  NormalSettings settings_;
};

}  // namespace o2
