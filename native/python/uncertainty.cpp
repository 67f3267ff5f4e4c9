#include "python/uncertainty.hpp"

#include <nanobind/stl/pair.h>

#include <utility>
#include <vector>

#include "core/outcome.hpp"
#include "core/sparse.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::array_of, o2::Curvature, o2::expect, o2::HeldUncertainty, o2::KeptArray, o2::NewArray, o2::Standardised, o2::Uncertainty;

namespace {

NewArray<double, 2> matrix(const std::vector<double>& values, int64_t columns) {
  NewArray<double, 2> made({columns ? static_cast<int64_t>(values.size()) / columns : 0, columns});
  std::copy(values.begin(), values.end(), made.view.data);
  return made;
}

std::vector<double> doubles(nb::handle given) {
  const auto floats = KeptArray<float>(given).copied();
  return {floats.begin(), floats.end()};
}

void check(const Curvature& of, const Standardised& inputs, Array<const float, 2> contexts) {
  const auto d = static_cast<int64_t>(of.centre.size());
  expect(contexts.shape[1] == d && static_cast<int64_t>(inputs.shift.size()) == d, "curvature: found another number of inputs");
}

void check_rows(Array<const int32_t> slots, Array<const float> values, Array<const int64_t> offsets) {
  const int64_t n = offsets.size() - 1;
  bool fits = n >= 0 && values.size() == slots.size() && offsets[0] >= 0 && offsets[n] <= slots.size();
  for (int64_t r = 0; fits && r < n; r++) fits = offsets[r] < offsets[r + 1];
  for (int64_t j = 0; fits && j < slots.size(); j++) fits = slots[j] >= 0;
  expect(fits, "rows: expected slots, with the constant first in every row");
}

void check_actions(const Curvature& of, Array<const int64_t> actions, Array<const double> h, int64_t n) {
  const auto K = static_cast<int64_t>(of.level.size());
  expect(actions.size() == n && h.size() == n, "curvature: found columns of another length");
  for (int64_t r = 0; r < n; r++) expect(actions[r] >= 0 && actions[r] < K, "curvature: found an action that is not there");
}

void add(Curvature& self, nb::tuple plan, Array<const float, 2> contexts, Array<const int64_t> actions, Array<const double> h) {
  const Standardised inputs = o2::standardised_of(plan);
  check(self, inputs, contexts);
  check_actions(self, actions, h, contexts.shape[0]);
  self.add(inputs, contexts.data, actions.data, h.data, actions.size());
}

void add_slots(Curvature& self, Array<const int32_t> slots, Array<const float> values, Array<const int64_t> offsets, int64_t known,
               Array<const int64_t> actions, Array<const double> h) {
  check_rows(slots, values, offsets);
  check_actions(self, actions, h, offsets.size() - 1);
  for (const int32_t slot : slots.span()) expect(slot < known, "rows: found a slot that is not there");
  self.add(o2::SparseColumns{slots.data, values.data, offsets.data, offsets.size() - 1}, known, actions.data, h.data);
}

NewArray<double> mean_curvature(Array<const double, 2> z, Array<const double> weights) {
  const auto [M, n] = z.shape;
  expect(weights.size() == M, "weights: expected one of each member");
  NewArray<double> h({n});
  o2::mean_curvature(z.data, M, n, n, weights.data, h.view.data);
  return h;
}

HeldUncertainty from_parts(Array<const double> shift, Array<const double> scale, double clip, Array<const double> centre,
                           Array<const double> level, Array<const double, 2> spread, double optimism) {
  const int64_t d = shift.size(), K = level.size();
  const bool fits = scale.size() == d && centre.size() == d && spread.shape[1] == K && (d == 0 || spread.shape[0] == d) && K > 0;
  expect(fits, "uncertainty: found parts of other sizes");
  for (const double each : level.span()) expect(each > 0, "uncertainty: expected a level above 0");
  for (const double each : spread.span()) expect(each > 0, "uncertainty: expected a spread above 0");
  const auto values = [](const auto& of) { return std::vector<double>(of.span().begin(), of.span().end()); };
  return {std::make_shared<const Uncertainty>(Standardised(values(shift), values(scale), clip), values(centre), values(level),
                                              values(spread), optimism)};
}

nb::tuple parts(const HeldUncertainty& self) {
  const Uncertainty& own = *self.held;
  const Standardised& inputs = own.standardised();
  return nb::make_tuple(array_of(inputs.shift), array_of(inputs.scale), inputs.clip, array_of(own.centre()), array_of(own.level()),
                        matrix(own.spread(), own.n_actions()), own.optimism());
}

using Both = std::pair<NewArray<double, 2>, NewArray<double, 2>>;

template <class Look>
Both of_rows(int64_t n, int64_t K, const Look& look) {
  NewArray<double, 2> variance({n, K}), bonus({n, K});
  o2::Doubt found;
  for (int64_t r = 0; r < n; r++) {
    look(r, found);
    std::copy_n(found.variance.data(), K, variance.view.data + r * K);
    std::copy_n(found.bonus.data(), K, bonus.view.data + r * K);
  }
  return {std::move(variance), std::move(bonus)};
}

Both at(const HeldUncertainty& self, Array<const float, 2> contexts) {
  const auto [n, d] = contexts.shape;
  const int64_t K = self.held->n_actions();
  expect(d == self.held->inputs(), "contexts: found another number of inputs");
  return of_rows(n, K, [&](int64_t r, o2::Doubt& found) { self.held->at(contexts.data + r * d, found); });
}

// Rows of hashed features as members see them: with the constant first.
Both at_slots(const HeldUncertainty& self, Array<const int32_t> slots, Array<const float> values, Array<const int64_t> offsets) {
  check_rows(slots, values, offsets);
  return of_rows(offsets.size() - 1, self.held->n_actions(), [&](int64_t r, o2::Doubt& found) {
    const int64_t first = offsets[r] + 1;
    self.held->at(slots.data + first, values.data + first, offsets[r + 1] - first, found);
  });
}

using OfSets = std::pair<NewArray<double>, NewArray<double>>;

template <class Look>
OfSets of_sets(const HeldUncertainty& self, int64_t n, const Look& look) {
  expect(self.held->of_sets(), "uncertainty: found that of a fixed number of actions, expected that of action sets");
  NewArray<double> variance({n}), bonus({n});
  o2::Doubt found;
  look(found);
  std::copy_n(found.variance.data(), n, variance.view.data);
  std::copy_n(found.bonus.data(), n, bonus.view.data);
  return {std::move(variance), std::move(bonus)};
}

OfSets at_each(const HeldUncertainty& self, Array<const float, 2> rows) {
  const auto [n, d] = rows.shape;
  expect(d == self.held->inputs(), "contexts: found another number of inputs");
  return of_sets(self, n, [&](o2::Doubt& found) { self.held->at_each(rows.data, n, found); });
}

OfSets at_each_slots(const HeldUncertainty& self, Array<const int32_t> slots, Array<const float> values, Array<const int64_t> offsets) {
  check_rows(slots, values, offsets);
  const int64_t n = offsets.size() - 1;
  return of_sets(self, n, [&](o2::Doubt& found) { self.held->at_each(slots.data, values.data, offsets.data, n, found); });
}

}  // namespace

namespace o2 {

Standardised standardised_of(nb::tuple plan) {
  expect(plan.size() >= 3, "plan: expected shift, scale and clip");
  Standardised made(doubles(plan[0]), doubles(plan[1]), nb::cast<float>(nb::float_(plan[2])));
  expect(made.shift.size() == made.scale.size(), "plan: found another number of scales");
  return made;
}

nb::tuple saved(const Curvature& from) {
  return nb::make_tuple(array_of(std::vector<int64_t>{from.base, from.rows, from.renewed}), from.total, array_of(from.level),
                        matrix(from.spread, static_cast<int64_t>(from.level.size())), array_of(from.centre));
}

void load(Curvature& to, nb::handle given) {
  if (given.is_none()) {
    to.rows = -1;
    return;
  }
  const auto of = nb::borrow<nb::tuple>(given);
  const KeptArray<int64_t> numbers(of[0]);
  const KeptArray<double, 2> spread(of[3]);
  auto level = KeptArray<double>(of[2]).copied(), centre = KeptArray<double>(of[4]).copied();
  const auto K = static_cast<int64_t>(to.level.size()), d = static_cast<int64_t>(to.centre.size());
  expect(numbers.view().size() == 3 && level.size() == to.level.size() && centre.size() == to.centre.size() &&
             spread.view().shape[1] == K && (d == 0 || spread.view().shape[0] == d),
         "curvature: found parts of other sizes");
  const auto& n = numbers.view();
  expect(n[0] >= 0 && n[0] <= n[1] && n[1] <= n[2] + (n[1] - n[0]), "curvature: found rows out of order");
  to.base = n[0], to.rows = n[1], to.renewed = n[2], to.total = nb::cast<double>(of[1]);
  to.level = std::move(level), to.spread = spread.copied(), to.centre = std::move(centre);
}

}  // namespace o2

void bind_uncertainty(nb::module_& m) {
  m.def("mean_curvature", &mean_curvature, nb::arg("z"), nb::arg("weights"),
        "Return m (1 - m), m = Σ ρ σ(z), of each row. z: members' log-odds of the played actions, [M, n]; weights: ρ [M]");
  nb::class_<HeldUncertainty>(m, "Uncertainty", "How certain the predicted rewards of actions are, a fixed number of them or those of sets; of one moment.")
      .def_static("from_parts", &from_parts, nb::arg("shift"), nb::arg("scale"), nb::arg("clip"), nb::arg("centre"), nb::arg("level"),
                  nb::arg("spread"), nb::arg("optimism"), "Return it from what `parts` returned.")
      .def_prop_ro("parts", &parts, nb::sig("def parts(self) -> tuple[typing.Any, ...]"))
      .def_prop_ro("inputs", [](const HeldUncertainty& self) { return self.held->inputs(); })
      .def("at", &at, nb::arg("contexts"), "Return the variance and the optimism of each action in these rows, [n, K] each.")
      .def("at_slots", &at_slots, nb::arg("slots"), nb::arg("values"), nb::arg("offsets"), "The same for rows of hashed features.")
      .def("at_each", &at_each, nb::arg("rows"), "Return the variance of each row of action sets, and its optimism, 0. [n] each")
      .def("at_each_slots", &at_each_slots, nb::arg("slots"), nb::arg("values"), nb::arg("offsets"), "The same for rows of hashed features.");
  nb::class_<Curvature>(m, "Curvature", "The sums over rows from which `Uncertainty` is made.")
      .def(nb::init<int64_t, int64_t>(), nb::arg("n_actions"), nb::arg("inputs"))
      .def_ro("base", &Curvature::base)
      .def_ro("rows", &Curvature::rows, "The log's rows up to this number are in the sums; -1: nothing is known.")
      .def_prop_ro("next", &Curvature::next, "Number of rows at which new ones are to be added.")
      .def_ro_static("most_actions", &Curvature::MOST_ACTIONS)
      .def("is_old", &Curvature::is_old, nb::arg("since"), nb::arg("n"), "Return whether all rows are to be looked at again.")
      .def("begin", [](Curvature& self, int64_t since, nb::tuple plan, Array<const float, 2> contexts) {
        const Standardised inputs = o2::standardised_of(plan);
        check(self, inputs, contexts);
        self.begin(since, inputs, contexts.data, contexts.shape[0]);
      }, nb::arg("since"), nb::arg("plan"), nb::arg("contexts"), "Start again from these rows of the log, which begin at `since`.",
           nb::sig("def begin(self, since: int, plan: tuple[typing.Any, ...], contexts: numpy.typing.NDArray[numpy.floating[typing.Any]]) -> None"))
      .def("add", &add, nb::arg("plan"), nb::arg("contexts"), nb::arg("actions"), nb::arg("h"),
           nb::sig("def add(self, plan: tuple[typing.Any, ...], contexts: numpy.typing.NDArray[numpy.floating[typing.Any]], actions: "
                   "numpy.typing.NDArray[numpy.int64], h: numpy.typing.NDArray[numpy.float64]) -> None"),
           "Add the next rows.")
      .def("begin_slots", nb::overload_cast<int64_t, int64_t>(&Curvature::begin), nb::arg("since"), nb::arg("n"), "Like `begin`, for hashed features.")
      .def("add_slots", &add_slots, nb::arg("slots"), nb::arg("values"), nb::arg("offsets"), nb::arg("known"), nb::arg("actions"),
           nb::arg("h"), "Add the next rows of hashed features, with the constant first. known: number of slots")
      .def("uncertainty", [](const Curvature& self, nb::tuple plan) { return HeldUncertainty{self.uncertainty(o2::standardised_of(plan))}; },
           nb::arg("plan"), nb::sig("def uncertainty(self, plan: tuple[typing.Any, ...]) -> Uncertainty"), "Return what they say now.")
      .def_prop_ro("state", [](const Curvature& self) { return o2::saved(self); }, nb::sig("def state(self) -> tuple[typing.Any, ...]"))
      .def("load", [](Curvature& self, nb::handle state) { o2::load(self, state); }, nb::arg("state").none(), "Continue from `state`; None: unknown.");
}
