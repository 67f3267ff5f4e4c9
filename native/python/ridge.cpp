#include "core/ridge.hpp"

#include <nanobind/stl/tuple.h>

#include "python/arrays.hpp"
#include "python/module.hpp"
#include "python/packed.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

void absorb_row(Array<double, 2> inverse, Array<double> weights, Array<const double> x, double target) {
  const int64_t d = x.size();
  o2::expect(weights.size() == d && inverse.shape[0] == d && inverse.shape[1] == d,
             "inverse, weights: expected as many columns as x has entries");
  o2::absorb_row(inverse.data, weights.data, x.data, d, target);
}

std::tuple<NewArray<double>, NewArray<double>> ridge_scores(Array<const double, 3> inverses, Array<const double, 2> weights,
                                                            Array<const double> x) {
  const auto [K, d] = weights.shape;
  o2::expect(x.size() == d && inverses.shape == std::array<int64_t, 3>{K, d, d},
             "inverses, weights: expected as many columns as x has entries");
  NewArray<double> means({K}), deviations({K});
  o2::ridge_scores(inverses.data, weights.data, x.data, K, d, means.view.data, deviations.view.data);
  return {std::move(means), std::move(deviations)};
}

double best_probability(Array<const double> means, Array<const double> deviations, int64_t action) {
  const int64_t K = means.size();
  o2::expect(deviations.size() == K && 0 <= action && action < K, "expected one of as many actions as there are means");
  return o2::best_probability(means.data, deviations.data, K, action);
}

NewArray<double> ridge_baseline(Array<const float, 2> contexts, nb::typed<nb::tuple, nb::any, nb::ellipsis> plan, Array<const double> losses,
                                double baseline, double ridge) {
  const auto [n, d] = contexts.shape;
  const o2::Plan made = o2::plan_of(plan);
  o2::expect(made.d == d, "plan: found other numbers of inputs than the rows have");
  o2::expect(losses.size() == n && ridge > 0, "losses, ridge: expected a loss per row, and a number above 0");
  NewArray<double> out({n});
  const nb::gil_scoped_release released;
  o2::ridge_baseline(made, contexts.data, losses.data, n, baseline, ridge, out.view.data);
  return out;
}

}  // namespace

void bind_ridge(nb::module_& m) {
  m.def("absorb_row", &absorb_row, nb::arg("inverse"), nb::arg("weights"), nb::arg("x"), nb::arg("target"),
        "Update A⁻¹ [d, d] and θ [d] of a ridge regression in place by a row.");
  m.def("ridge_scores", &ridge_scores, nb::arg("inverses"), nb::arg("weights"), nb::arg("x"),
        "Return x·θ_k and √(xᵀ A_k⁻¹ x) of each action. inverses [K, d, d], weights [K, d]");
  m.def("ridge_baseline", &ridge_baseline, nb::arg("contexts"), nb::arg("plan"), nb::arg("losses"), nb::arg("baseline"), nb::arg("ridge"),
        "Return `ridge_baseline` of `o2pl.objectives.control`, [n]. plan: of the features; baseline: NaN for the mean of the losses.");
  m.def("best_probability", &best_probability, nb::arg("means"), nb::arg("deviations"), nb::arg("action"),
        "Return P(X_k is the largest) for k = `action` and independent X_j ~ N(mean_j, deviation_j²).");
}
