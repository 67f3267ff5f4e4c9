#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "python/module.hpp"
#include "python/packed.hpp"

namespace nb = nanobind;
using o2::Packed;

namespace {

std::vector<double> doubles(nb::handle given) { return o2::KeptArray<double>(given).copied(); }

}  // namespace

std::shared_ptr<const o2::ScoringGroup> o2::scoring_group(nb::handle given, const std::vector<int64_t>& members, nb::list weights) {
  const nb::tuple plan = nb::borrow<nb::tuple>(given);
  auto made = std::make_shared<o2::ScoringGroup>();
  made->shift = doubles(plan[0]), made->scale = doubles(plan[1]), made->clip = nb::cast<double>(nb::float_(plan[2]));
  made->product_shift = doubles(plan[4]), made->product_scale = doubles(plan[5]), made->intercept = nb::cast<int>(plan[6]);
  const o2::KeptArray<double, 2> kept_directions(plan[3]);
  const auto directions = kept_directions.view();
  const auto [d, m] = directions.shape;
  const auto p = static_cast<int64_t>(made->product_shift.size());
  const int64_t factors = p ? (m ? m : d) : 0;
  o2::expect(static_cast<int64_t>(made->shift.size()) == d && made->scale.size() == made->shift.size() &&
            made->product_scale.size() == made->product_shift.size() && factors * (factors + 1) / 2 == p,
        "plan: found numbers of inputs and products that do not fit");
  made->d = d, made->directions_of = p ? m : 0, made->width = made->intercept + d + p, made->members = members;
  const int64_t padded_m = (m + 7) / 8 * 8;
  made->directions.assign(d * padded_m, 0.0);
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < m; j++) made->directions[i * padded_m + j] = directions.data[i * m + j];
  const auto K = o2::KeptArray<double>(weights[members[0]]).view().size() / made->width;
  made->columns = (K * static_cast<int64_t>(members.size()) + 7) / 8 * 8;
  made->W.assign(made->width * made->columns, 0.0);
  for (size_t own = 0; own < members.size(); own++) {
    const o2::KeptArray<double> kept(weights[members[own]]);
    const auto theta = kept.view();
    o2::expect(theta.size() >= K * made->width, "weights: found numbers that do not fit the features");
    for (int64_t k = 0; k < K; k++)
      for (int64_t q = 0; q < made->width; q++)
        made->W[q * made->columns + static_cast<int64_t>(own) * K + k] = theta[k * made->width + q];
  }
  return made;
}

void bind_deciding(nb::module_& m) {
  nb::class_<Packed>(m, "Packed", "Members with scores linear in planned features, ready to decide.")
      .def(nb::init<nb::list, nb::list, bool, const Packed*>(), nb::arg("plans"), nb::arg("weights"), nb::arg("sets"),
           nb::arg("before").none(),
           nb::sig("def __init__(self, plans: list[typing.Any], weights: list[typing.Any], sets: bool, before: Packed | None) -> "
                   "None"))
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
