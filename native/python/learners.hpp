// Learners of the compiled core, as Python holds them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/curve_learner.hpp"
#include "core/dense_learner.hpp"
#include "core/gaussian_learner.hpp"
#include "core/hashed_learner.hpp"

namespace o2 {

// What all learners begin with. members: the fields of `MemberSettings`; watch: those of `WatchSettings`, or None;
// choices: an object with the methods of `Choices`.
struct GivenLearner {
  GivenLearner(nanobind::object columns, int K, std::pair<double, double> ends, nanobind::list members, nanobind::handle watch,
               nanobind::object choices, int features);

  nanobind::object columns;
  int K;
  std::pair<double, double> ends;
  std::vector<MemberSettings> members;
  WatchSettings watch;
  std::unique_ptr<Choices> choices;
};

class CompiledLearner {
 public:
  virtual ~CompiledLearner();

  bool has_rows() const;  // in the columns, rather than elsewhere
  bool learn(int threads);
  // Looks at the new rows, if no member is to learn from them and they are few. False: nothing was done.
  bool look();
  void load(nanobind::tuple state);
  nanobind::tuple state() const;

  void predicted(int64_t row, const double* scores, int64_t K, int64_t action) { learner_->predicted(row, scores, K, action); }
  int64_t checkpoint() const { return learner_->checkpoint; }
  int64_t solve_at() const { return learner_->solve_at(); }
  double dispersion() const { return learner_->dispersion; }
  void set_dispersion(double to) { learner_->dispersion = to; }
  const std::vector<double>& acting() const { return learner_->acting(); }
  int present() const { return learner_->present(); }

  // How the rows of its kind are scored; null: they are of another kind.
  virtual std::shared_ptr<const Scorer> scorer() const { return nullptr; }
  virtual std::shared_ptr<const HashedScorer> hashed_scorer() const { return nullptr; }
  std::shared_ptr<const Uncertainty> uncertainty() const { return learner_->uncertainty(); }
  virtual Drawing drawing() const { return {}; }

 protected:
  nanobind::object columns_;
  std::unique_ptr<Choices> choices_;
  std::unique_ptr<Learner> learner_;

  explicit CompiledLearner(GivenLearner& given) : columns_(std::move(given.columns)), choices_(std::move(given.choices)) {}
  virtual void attach_rows() = 0;                          // those of the log, as they are now
  virtual int64_t load_features(nanobind::list state) = 0;  // returns the largest number of observed rows
  virtual nanobind::list saved_features() const = 0;
  // What a member keeps between two times of learning: pairs of L-BFGS, unless it learns otherwise.
  virtual void load_kept(LearnedMember& to, nanobind::tuple kept);
  virtual nanobind::tuple saved_kept(const LearnedMember& from) const;

 private:
  LearnedColumns log();
  void load_member(LearnedMember& to, nanobind::handle given);
  nanobind::tuple saved_member(const LearnedMember& from) const;
};

// On rows of numbers.
class CompiledNumeric : public CompiledLearner {
 public:
  std::shared_ptr<const Scorer> scorer() const override { return numeric().scorer(); }
  Drawing drawing() const override { return numeric().drawing(); }

 protected:
  using CompiledLearner::CompiledLearner;
  void attach_rows() override;
  int64_t load_features(nanobind::list state) override;
  nanobind::list saved_features() const override;

 private:
  NumericLearner& numeric() const { return static_cast<NumericLearner&>(*learner_); }
};

// With softmax policies.
class CompiledDense final : public CompiledNumeric {
 public:
  // features: (d, standardised, clip, intercept, directions, growth)
  CompiledDense(nanobind::object columns, int K, std::pair<double, double> ends, nanobind::list members, nanobind::handle watch,
                nanobind::object choices, nanobind::list features, std::vector<int64_t> panel_rows, int64_t held);

 private:
  CompiledDense(GivenLearner&& given, nanobind::list features, std::vector<int64_t> panel_rows, int64_t held);
};

// With a reward curve over a real-valued action.
class CompiledCurve final : public CompiledNumeric {
 public:
  // curve: (cells, bounds, degree, draws, spread, sharpness, powers, features, scales, basis, width); begun: what `saved_kept` returns
  CompiledCurve(nanobind::object columns, std::pair<double, double> ends, nanobind::list members, nanobind::object choices,
                nanobind::list features, nanobind::tuple curve, nanobind::tuple begun);

 protected:
  void load_kept(LearnedMember& to, nanobind::tuple kept) override;
  nanobind::tuple saved_kept(const LearnedMember& from) const override;

 private:
  CompiledCurve(GivenLearner&& given, nanobind::list features, nanobind::tuple curve, nanobind::tuple begun);
  CurveLearner& own() const { return static_cast<CurveLearner&>(*learner_); }
};

// With a normal policy.
class CompiledGaussian final : public CompiledNumeric {
 public:
  // normal: the fields of `NormalSettings`
  CompiledGaussian(nanobind::object columns, std::pair<double, double> ends, nanobind::list members, nanobind::object choices,
                   nanobind::list features, nanobind::tuple normal);

 private:
  CompiledGaussian(GivenLearner&& given, nanobind::list features, nanobind::tuple normal);
};

// On sparse rows of hashed features, or on action sets of them: K = 0.
class CompiledHashed final : public CompiledLearner {
 public:
  CompiledHashed(nanobind::object columns, int K, std::pair<double, double> ends, nanobind::list members, nanobind::handle watch,
                 nanobind::object choices, int64_t panel);

  std::shared_ptr<const HashedScorer> hashed_scorer() const override { return own().scorer(); }

 protected:
  void attach_rows() override;
  int64_t load_features(nanobind::list state) override;
  nanobind::list saved_features() const override;

 private:
  CompiledHashed(GivenLearner&& given, int64_t panel);
  std::vector<nanobind::object> tables_;  // `slot_of`, the last one last: earlier scorers may still read theirs
  HashedLearner& own() const { return static_cast<HashedLearner&>(*learner_); }
};

}  // namespace o2
