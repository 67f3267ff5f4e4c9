// `Learner` of one member with a reward curve, by recursive least squares; it acts by posterior draws, each a softmax over
// cells. See `o2pl.policies.curve` and `o2pl.oracles.recursive`.
#pragma once
#include <vector>

#include "core/curve.hpp"
#include "core/numeric_learner.hpp"

namespace o2 {

struct CurveSettings {
  int64_t cells, draws, width;  // width: of the features
  Bounds bounds;
  int64_t degree;
  std::vector<int64_t> powers, features;  // of the terms, [D]
  std::vector<double> scales;
  std::vector<double> basis;  // [cells, degree + 1]
  double spread, sharpness;

  CurveTerms terms() const { return {static_cast<int64_t>(scales.size()), degree, powers.data(), features.data(), scales.data()}; }
};

// What was learned from rows; D terms, S draws.
struct CurveState {
  std::vector<double> first_row;  // features, action and reward: identifies the rows. Empty before any
  int64_t rows = 0;
  std::vector<double> covariance, centre, deviations, noise;  // [D, D], [D], [S, D], [2]
};

class CurveLearner final : public NumericLearner {
 public:
  // features: of the member; begun: the state before any row
  CurveLearner(double low, double high, const MemberSettings& member, Choices& choices, std::vector<RunningFeatures> features,
              CurveSettings settings, CurveState begun);

  CurveState state;
  const CurveSettings& settings() const { return settings_; }
  const CurveState& begun() const { return begun_; }
  Drawing drawing() const override { return {Drawing::Kind::within, settings_.bounds}; }

 protected:
  void solve(LearnedMember& member, int64_t start, const double* weights) override;
  void solved() override {}
  int64_t n_params(int) const override { return 1 + (1 + settings_.draws) * settings_.terms().count; }
  void score(int64_t, int64_t, double*) override {}  // a single member is not weighted
  void renew(const std::vector<bool>& changed) override;

 private:
  CurveSettings settings_;
  CurveState begun_;

  void join(std::vector<double>& params) const;
};

}  // namespace o2
