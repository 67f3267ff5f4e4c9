// Members with scores linear in planned features, ready to decide.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/deciding.hpp"
#include "python/arrays.hpp"
#include "python/rows.hpp"

namespace o2 {

Plan plan_of(nanobind::handle given);  // a `FeaturePlan`

std::shared_ptr<const ScoringGroup> packed_group(nanobind::handle plan, const std::vector<int64_t>& members,
                                                  nanobind::list weights);

// Members with the same plan are a group: their features are computed once.
struct Packed {
  std::shared_ptr<const Scorer> scorer;
  std::shared_ptr<const Uncertainty> uncertainty;  // of its predictions; null: not known
  nanobind::list plans, weights;
  bool sets;
  mutable ScoringRoom room;  // the GIL is held
  mutable std::vector<float> inputs;

  Packed(nanobind::list plans_, nanobind::list weights_, bool sets_, const Packed* before, std::shared_ptr<const Uncertainty> unsure)
      : uncertainty(std::move(unsure)), plans(plans_), weights(weights_), sets(sets_) {
    const size_t M = nanobind::len(plans);
    expect(M > 0 && nanobind::len(weights) == M, "weights: found another number than plans");
    std::vector<std::vector<int64_t>> members;
    std::vector<PyObject*> firsts;
    for (size_t m = 0; m < M; m++) {
      PyObject* plan = nanobind::handle(plans[m]).ptr();
      const auto group = static_cast<size_t>(std::find(firsts.begin(), firsts.end(), plan) - firsts.begin());
      if (group == firsts.size()) firsts.push_back(plan), members.emplace_back();
      members[group].push_back(static_cast<int64_t>(m));
    }
    std::vector<std::shared_ptr<const ScoringGroup>> groups;
    for (const auto& own : members) {
      auto known = before ? before->same(*this, own) : nullptr;
      groups.push_back(known ? known : packed_group(plans[own[0]], own, weights));
    }
    const auto d = groups[0]->d, size = KeptArray<double>(weights[0]).view().size();
    for (const auto& each : groups) expect(each->d == d, "plans: found other numbers of inputs");
    const int64_t first_width = groups[0]->width;
    expect(size >= first_width, "weights: found numbers that do not fit the features");
    scorer = std::make_shared<const Scorer>(d, size / first_width, static_cast<int64_t>(M), std::move(groups));
    expect(!uncertainty || (uncertainty->inputs() == d && uncertainty->n_actions() == scorer->n_actions()),
           "uncertainty: found other inputs or actions");
  }

  // The group of these members, if nothing of it has changed.
  std::shared_ptr<const ScoringGroup> same(const Packed& now, const std::vector<int64_t>& members_of) const {
    for (const auto& each : scorer->groups()) {
      if (each->members != members_of) continue;
      for (const int64_t m : members_of)
        if (!nanobind::handle(now.plans[m]).is(plans[m]) || !nanobind::handle(now.weights[m]).is(weights[m])) return nullptr;
      return each;
    }
    return nullptr;
  }

  // The acting policy in room.pi, among n rows of a set or for one; false: the context is not what kernels read.
  bool act(nanobind::handle context, Array<const double> acting) const {
    int64_t n = 1;
    if (!read_rows(context, sets ? 2 : 1, scorer->inputs(), inputs, n) || n == 0) return false;
    scorer->policy(inputs.data(), n, Acting(acting.data, scorer->members()), uncertainty.get(), room);
    return true;
  }

  std::optional<std::pair<int64_t, double>> decide(nanobind::handle context, Array<const double> acting, double uniform) const {
    if (!act(context, acting)) return std::nullopt;
    const int64_t action = draw_one(room.pi.data(), static_cast<int64_t>(room.pi.size()), uniform);
    return std::pair{action, room.pi[action]};
  }

  nanobind::object policy(nanobind::handle context, Array<const double> acting) const {
    if (!act(context, acting)) return nanobind::none();
    NewArray<double> made({static_cast<int64_t>(room.pi.size())});
    std::copy(room.pi.begin(), room.pi.end(), made.view.data);
    return made.object;
  }

  // The score of a row where there is one member with one score.
  std::optional<double> score(nanobind::handle context) const {
    int64_t n = 1;
    if (!read_rows(context, 1, scorer->inputs(), inputs, n)) return std::nullopt;
    room.scores.resize(scorer->members() * scorer->n_actions());
    scorer->scores(inputs.data(), 1, room.scores.data(), 1, 1, room);
    return room.scores[0];
  }

  NewArray<double, 3> scores(Array<const float, 2> contexts) const {
    const auto [n, d] = contexts.shape;
    expect(d == scorer->inputs(), "contexts: found another number of inputs");
    const int64_t K = scorer->n_actions();
    NewArray<double, 3> made({scorer->members(), n, K});
    const nanobind::gil_scoped_release released;
    ScoringRoom own;
    scorer->scores(contexts.data, n, made.view.data, n * K, K, own);
    return made;
  }
};


}  // namespace o2
