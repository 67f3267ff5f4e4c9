#include "core/normal.hpp"

#include <nanobind/stl/tuple.h>

#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray, o2::Bounds;

namespace {

Bounds bounds_of(Array<const double> numbers) {
  o2::expect(numbers.size() == 3, "within: expected low, high, and log(high / low) or 0");
  return Bounds::of(numbers.data);
}

NewArray<double> actions_at(Array<const double> places, Array<const double> within) {
  const Bounds bounds = bounds_of(within);
  NewArray<double> actions({places.size()});
  for (int64_t s = 0; s < places.size(); s++) actions.view[s] = o2::action_at(places[s], bounds);
  return actions;
}

NewArray<double> places_of(Array<const double> actions, Array<const double> within) {
  const Bounds bounds = bounds_of(within);
  NewArray<double> places({actions.size()});
  for (int64_t s = 0; s < actions.size(); s++) places.view[s] = o2::place_of(actions[s], bounds);
  return places;
}

std::tuple<NewArray<double>, NewArray<double>> draw_numbers(Array<const double, 2> probabilities, Array<const double> uniforms,
                                                            Array<const double> within) {
  const auto [n, K] = probabilities.shape;
  o2::expect(uniforms.size() == n && K > 0, "uniforms: expected one per row of the probabilities, of one or more cells");
  const Bounds bounds = bounds_of(within);
  NewArray<double> actions({n}), densities({n});
  for (int64_t s = 0; s < n; s++) {
    const auto [action, density] = o2::draw_number(probabilities.data + s * K, K, uniforms[s], bounds);
    actions.view[s] = action, densities.view[s] = density;
  }
  return {std::move(actions), std::move(densities)};
}

std::tuple<NewArray<double>, NewArray<double>> draw_normal(Array<const double> means, double scale, Array<const double> uniforms) {
  const int64_t n = means.size();
  o2::expect(uniforms.size() == n, "uniforms: expected one per mean");
  NewArray<double> actions({n}), densities({n});
  for (int64_t s = 0; s < n; s++) {
    const auto [action, density] = o2::draw_normal(means[s], scale, uniforms[s]);
    actions.view[s] = action, densities.view[s] = density;
  }
  return {std::move(actions), std::move(densities)};
}

NewArray<double> normal_density(Array<const double> actions, Array<const double> means, double scale) {
  const int64_t n = means.size();
  o2::expect(actions.size() == n, "actions: expected one per mean");
  NewArray<double> densities({n});
  for (int64_t s = 0; s < n; s++) densities.view[s] = o2::normal_density(actions[s], means[s], scale);
  return densities;
}

}  // namespace

void bind_cells(nb::module_& m) {
  m.def("actions_at", &actions_at, nb::arg("places"), nb::arg("within"),
        "Return the actions at relative positions between the bounds. within: `Cells.numbers`");
  m.def("places_of", &places_of, nb::arg("actions"), nb::arg("within"),
        "Return the relative positions of actions between the bounds. within: `Cells.numbers`");
  m.def("draw_normal", &draw_normal, nb::arg("means"), nb::arg("scale"), nb::arg("uniforms"),
        "Draw an action from a normal distribution per mean. Returns actions and densities. [n]");
  m.def("normal_density", &normal_density, nb::arg("actions"), nb::arg("means"), nb::arg("scale"),
        "Return the density of each action under a normal distribution. [n]");
  m.def("draw_numbers", &draw_numbers, nb::arg("probabilities"), nb::arg("uniforms"), nb::arg("within"),
        "Draw an action within bounds per row, from the probabilities of cells [n, K]. Returns actions and densities.");
}
