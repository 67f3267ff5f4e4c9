// A learner of the compiled core, as Python holds it.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/dense_learner.hpp"

namespace o2 {

class CompiledLearner {
 public:
  // features: (d, standardised, clip, intercept, directions); members: the fields of `MemberSettings`; watch: those of
  // `WatchSettings`, or None; choices: an object with the methods of `Choices`
  CompiledLearner(nanobind::object columns, int K, std::pair<double, double> ends, nanobind::list features, nanobind::list members,
                  nanobind::handle watch, nanobind::object choices, std::vector<int64_t> panel_rows, int64_t held);
  ~CompiledLearner();

  bool has_rows() const;  // in the columns, rather than elsewhere
  bool learn(int threads);
  void load(nanobind::tuple state);
  nanobind::tuple state() const;

  void predicted(int64_t row, const double* scores, int64_t action) { learner_->predicted(row, scores, action); }
  int64_t checkpoint() const { return learner_->checkpoint; }
  const std::shared_ptr<const Scorer>& scorer() const { return learner_->scorer(); }
  const std::vector<double>& acting() const { return learner_->acting(); }

 private:
  nanobind::object columns_;
  std::unique_ptr<Choices> choices_;
  std::unique_ptr<DenseLearner> learner_;

  LearnedColumns log();
};

}  // namespace o2
