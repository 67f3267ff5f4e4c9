#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "python/module.hpp"
#include "python/packed.hpp"
#include "python/uncertainty.hpp"

namespace nb = nanobind;
using o2::HeldUncertainty, o2::Packed;

o2::Plan o2::plan_of(nb::handle given) {
  const nb::tuple plan = nb::borrow<nb::tuple>(given);
  const o2::KeptArray<float, 2> kept(plan[3]);
  const auto directions = kept.view();  // [d, m]
  const auto [d, m] = directions.shape;
  o2::Plan made;
  made.d = static_cast<int>(d), made.directions_of = static_cast<int>(m);
  made.intercept = nb::cast<int>(plan[6]), made.clip = nb::cast<float>(nb::float_(plan[2]));
  const auto floats = [&](int place) { return o2::KeptArray<float>(plan[place]).copied(); };
  made.shift = floats(0), made.scale = floats(1), made.product_shift = floats(4), made.product_scale = floats(5);
  o2::expect(static_cast<int64_t>(made.shift.size()) == d && made.scale.size() == made.shift.size() &&
                 made.product_scale.size() == made.product_shift.size(),
             "plan: found numbers of inputs and products that do not fit");
  made.directions.resize(d * m);
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < m; j++) made.directions[j * d + i] = directions.data[i * m + j];
  return made;
}

std::shared_ptr<const o2::ScoringGroup> o2::packed_group(nb::handle given, const std::vector<int64_t>& members, nb::list weights) {
  const o2::Plan plan = plan_of(given);
  const int64_t p = plan.products(), factors = p ? (plan.directions_of ? plan.directions_of : plan.d) : 0;
  o2::expect(factors * (factors + 1) / 2 == p, "plan: found a number of products that fits no inputs");
  std::vector<o2::KeptArray<double>> kept;
  std::vector<const double*> own;
  for (const int64_t m : members) {
    kept.emplace_back(nb::handle(weights[m]));
    own.push_back(kept.back().view().data);
  }
  const int64_t K = kept[0].view().size() / plan.width();
  for (const auto& each : kept) o2::expect(each.view().size() >= K * plan.width(), "weights: found numbers that do not fit the features");
  return o2::scoring_group(plan, K, members, own);
}

void bind_deciding(nb::module_& m) {
  nb::class_<Packed>(m, "Packed", "Members with scores linear in planned features, ready to decide.")
      .def("__init__", [](Packed* self, nb::list plans, nb::list weights, bool sets, const Packed* before, const HeldUncertainty* unsure) {
        new (self) Packed(plans, weights, sets, before, unsure ? unsure->held : nullptr);
      }, nb::arg("plans"), nb::arg("weights"), nb::arg("sets"), nb::arg("before").none(), nb::arg("uncertainty").none(),
           nb::sig("def __init__(self, plans: list[typing.Any], weights: list[typing.Any], sets: bool, before: Packed | None, "
                   "uncertainty: Uncertainty | None) -> None"))
      .def("decide", &Packed::decide, nb::arg("context"), nb::arg("acting"), nb::arg("uniform"),
           "Draw an action for a row (among the rows of a set). None if the context is not a plain, finite array.")
      .def("policy", &Packed::policy,
           nb::sig("def policy(self, context: typing.Any, acting: numpy.typing.NDArray[numpy.floating[typing.Any]]) -> "
                   "numpy.typing.NDArray[numpy.float64] | None"), nb::arg("context"), nb::arg("acting"),
           "Return the acting policy of a row, or among the rows of a set; None as for `decide`.")
      .def("score", &Packed::score, nb::arg("context"), "Return the first member's first score of a row; None as for `decide`.")
      .def("scores", &Packed::scores, nb::arg("contexts"), "Return the scores of all members, [M, n, K].")
      .def_prop_ro("inputs", [](const Packed& self) { return self.scorer->inputs(); });
}
