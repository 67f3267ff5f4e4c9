// `Learner` on rows of numbers: features of the log's rows, and what scores rows now.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "core/deciding.hpp"
#include "core/drawing.hpp"
#include "core/learner.hpp"
#include "core/running_features.hpp"
#include "core/uncertainty.hpp"

namespace o2 {

class NumericLearner : public Learner {
 public:
  std::vector<RunningFeatures> features;
  const float* contexts = nullptr;  // of the log, set before `learn` and `resume`
  const std::shared_ptr<const Scorer>& scorer() const { return scorer_; }
  virtual Drawing drawing() const { return {}; }  // how it draws actions from scores now

 protected:
  NumericLearner(int K, double low, double high, std::vector<MemberSettings> members, const WatchSettings& watch, Choices& choices,
                 std::vector<RunningFeatures> given)
      : Learner(K, low, high, std::move(members), watch, choices, given[0].d), features(std::move(given)) {}

  void observe(int which, int64_t n) override { features[which].observe(contexts, n); }
  bool looks_between_solves() const override { return true; }
  void begin_curvature(int64_t first, int64_t n) override { curvature.begin(first, inputs(), contexts + first * features[0].d, n); }
  void add_curvature(int64_t from, int64_t n, const double* h) override {
    curvature.add(inputs(), contexts + from * features[0].d, log_.actions + from, h, n);
  }
  std::shared_ptr<const Uncertainty> make_uncertainty() const override { return curvature.uncertainty(inputs()); }

  std::shared_ptr<const Scorer> scorer_;

 private:
  Standardised inputs() const { return Standardised(features[0].plan()); }
};

}  // namespace o2
