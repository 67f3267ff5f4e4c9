#include "core/dense_learner.hpp"

#include <algorithm>
#include <utility>

namespace o2 {

DenseLearner::DenseLearner(int K, double low, double high, std::vector<MemberSettings> members, const WatchSettings& watch,
                           Choices& choices, std::vector<RunningFeatures> given, std::vector<int64_t> panel_rows, int64_t held)
    : NumericLearner(K, low, high, std::move(members), watch, choices, std::move(given)), panel_rows_(std::move(panel_rows)), held_(held) {}

int64_t DenseLearner::n_params(int which) const {
  const RunningFeatures& own = features[which];
  return static_cast<int64_t>(K_) * (own.intercept + own.d + static_cast<int64_t>(own.products.scale.size())) + 1;
}

void DenseLearner::solve(LearnedMember& member, int64_t start, const double* weights) {
  const int which = member.settings.features;
  if (!laid_ || laid_features_ != which || laid_start_ != start || laid_weights_ != weights) {
    const Columns columns{log_.actions + start, fractions_ + start, 0.0, nullptr, nullptr, weights};
    laid_ = std::make_shared<const DenseRows>(features[which].plan(), contexts + start * features[which].d, log_.n - start,
                                              columns, K_, true, panel_rows_[which], held_);
    laid_features_ = which, laid_start_ = start, laid_weights_ = weights;
  }
  const auto [size, level] = level_of(start, weights);
  const auto value = outcome_value(laid_, {member.settings.competing, size, member.settings.l2, member.settings.level_l2});
  const int threads = log_.n - start > panel_rows_[which] ? threads_ : 1;
  const Function function = [&](const double* x, double* g) { return value->value(x, g, threads); };
  descend_member(member, [&](auto& params, const Pairs& pairs, const Stop& stop) { return descend(function, params, pairs, stop); }, size,
                 level);
}

void DenseLearner::score(int64_t from, int64_t n, double* scores) {
  scorer_->scores(contexts + from * features[0].d, n, scores, K_, present() * K_, room_);
}

void DenseLearner::renew(const std::vector<bool>& changed) {
  std::vector<std::shared_ptr<const ScoringGroup>> groups;
  for (int which = 0; which < static_cast<int>(features.size()); which++) {
    std::vector<int64_t> own;
    bool same = scorer_ != nullptr;
    for (int i = 0; i < present(); i++) {
      if (members[i].settings.features != which) continue;
      own.push_back(i), same = same && !changed[i];
    }
    if (own.empty()) continue;
    if (same) {
      const auto& before = scorer_->groups();
      const auto known = std::find_if(before.begin(), before.end(), [&](const auto& each) { return each->members == own; });
      if (known != before.end()) {
        groups.push_back(*known);
        continue;
      }
    }
    std::vector<const double*> weights;
    for (const int64_t i : own) weights.push_back(members[i].params.data());
    groups.push_back(scoring_group(features[which].plan(), K_, own, weights));
  }
  scorer_ = std::make_shared<const Scorer>(features[0].d, K_, present(), std::move(groups));
}

}  // namespace o2
