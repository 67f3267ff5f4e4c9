#include "core/curve_learner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/recursive.hpp"
#include "core/vector_kernels.hpp"

namespace o2 {
namespace {

constexpr int64_t STRETCH = 1 << 12;  // rows at a time

}  // namespace

CurveLearner::CurveLearner(double low, double high, const MemberSettings& member, Choices& choices,
                           std::vector<RunningFeatures> given, CurveSettings settings, CurveState begun)
    : NumericLearner(0, low, high, {member}, {}, choices, std::move(given)), state(begun), settings_(std::move(settings)),
      begun_(std::move(begun)) {}

// Continues from the rows it knows; from none if they have changed, or their weights.
void CurveLearner::solve(LearnedMember& member, int64_t start, const double* weights) {
  const RunningFeatures& own = features[0];
  const Plan plan = own.plan();
  const CurveTerms terms = settings_.terms();
  const int64_t n = log_.n - start, width = plan.width(), D = terms.count;
  std::vector<float> made(width);
  transform(plan, contexts + start * own.d, 1, made.data());
  std::vector<double> first(made.begin(), made.end());
  first.push_back(log_.numbers[start]), first.push_back(fractions_[start]);
  if (weights || state.first_row != first || state.rows > n) state = begun_, state.first_row = std::move(first);
  const int64_t known = state.rows;
  std::vector<double> rows, places, design;
  for (int64_t from = known; from < n; from += STRETCH) {
    const int64_t some = std::min(STRETCH, n - from), at = start + from;
    made.resize(some * width), places.resize(some), design.resize(some * D);
    transform(plan, contexts + at * own.d, some, made.data());
    rows.assign(made.begin(), made.end());
    for (int64_t r = 0; r < some; r++) places[r] = place_of(log_.numbers[at + r], settings_.bounds);
    curve_design(rows.data(), width, places.data(), some, terms, design.data());
    vector_kernels().learn_rows({D, settings_.draws, state.covariance.data(), state.centre.data(), state.deviations.data(), state.noise.data()},
                                design.data(), fractions_ + at, weights ? weights + from : nullptr, some, from);
  }
  state.rows = n;
  member.solves++, member.evaluations += n - known;
  join(member.params);
}

// The sharpness, θ, and the draws of θ.
void CurveLearner::join(std::vector<double>& params) const {
  const auto D = state.centre.size();
  const double scale = std::sqrt(state.noise[0] / state.noise[1]), spread = settings_.spread * scale;
  params[0] = settings_.sharpness / scale;
  std::copy(state.centre.begin(), state.centre.end(), params.begin() + 1);
  for (size_t i = 0; i < state.deviations.size(); i++) params[1 + D + i] = state.centre[i % D] + spread * state.deviations[i];
}

void CurveLearner::renew(const std::vector<bool>&) {
  const std::vector<double>& params = members[0].params;
  const int64_t S = settings_.draws, K = settings_.cells, D = settings_.terms().count;
  const Plan plan = features[0].plan();
  const int64_t size = K * plan.width();
  std::vector<double> draws(params.begin() + 1 + D, params.end()), W(S * size);
  for (double& each : draws) each = params[0] * each;
  curve_weights(draws.data(), S, settings_.basis.data(), K, plan.width(), settings_.terms(), W.data());
  std::vector<int64_t> all(S);
  std::vector<const double*> weights(S);
  for (int64_t s = 0; s < S; s++) all[s] = s, weights[s] = W.data() + s * size;
  scorer_ = std::make_shared<const Scorer>(features[0].d, K, S, std::vector{scoring_group(plan, K, all, weights)});
}

}  // namespace o2
