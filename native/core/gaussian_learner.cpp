#include "core/gaussian_learner.hpp"

#include <stdexcept>
#include <utility>

#include "core/ridge.hpp"

namespace o2 {

GaussianLearner::GaussianLearner(double low, double high, const MemberSettings& member, Choices& choices,
                                 std::vector<RunningFeatures> given, const NormalSettings& settings)
    : NumericLearner(0, low, high, {member}, {}, choices, std::move(given)), settings_(settings) {}

void GaussianLearner::solve(LearnedMember& member, int64_t start, const double* weights) {
  if (weights) throw std::invalid_argument("weights: found some, expected rows with weight one each");
  const RunningFeatures& own = features[0];
  const Plan plan = own.plan();
  const int64_t n = log_.n - start;
  const float* X = contexts + start * own.d;
  std::vector<double> residuals(n), centred(n), control(n);
  for (int64_t r = 0; r < n; r++) residuals[r] = -fractions_[start + r];
  ridge_baseline(plan, X, residuals.data(), n, settings_.baseline, settings_.ridge, control.data());
  for (int64_t r = 0; r < n; r++) {
    residuals[r] -= control[r];
    centred[r] = log_.numbers[start + r] - settings_.centre;
  }
  const std::vector<int64_t> alone(n);
  const Columns columns{alone.data(), residuals.data(), 0.0, nullptr, nullptr, nullptr};
  const auto rows = std::make_shared<const DenseRows>(plan, X, n, columns, 1, false, settings_.panel_rows, settings_.held);
  const Pessimism now = choices_.pessimism(n);
  const auto value = gaussian_value(rows, {centred.data(), residuals.data(), log_.propensities + start},
                                    {now.alpha, static_cast<double>(n), member.settings.l2, now.penalty, settings_.scale, false});
  const int threads = n > settings_.panel_rows ? threads_ : 1;
  const Descent done = descend([&](const double* x, double* g) { return value->value(x, g, threads); }, member.params,
                               member.pairs(), {member.settings.iterations, member.settings.tolerance, 0.0});
  member.solves++, member.evaluations += done.evaluations;
}

void GaussianLearner::renew(const std::vector<bool>&) {
  scorer_ = std::make_shared<const Scorer>(features[0].d, 1, 1,
                                           std::vector{scoring_group(features[0].plan(), 1, {0}, {members[0].params.data()})});
}

}  // namespace o2
