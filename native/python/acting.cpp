#include "core/acting.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Acting, o2::Array, o2::NewArray;

namespace {

void softmax_in_place(Array<double> scores, double sharpness) {
  o2::softmax_in_place(scores.data, scores.size(), sharpness);
}

// scores [M, total] are left as they are
void acting_rows(Array<const double, 2> scores, Array<const int64_t> offsets, Array<const double> acting, Array<double> out,
                 std::optional<Array<const double>> variance, std::optional<Array<const double>> bonus) {
  const auto [M, total] = scores.shape;
  const bool fits = variance.has_value() == bonus.has_value() && (!variance || (variance->size() == total && bonus->size() == total));
  o2::expect(fits, "variance, bonus: expected both, one per score each, or none");
  const Acting how(acting.data, M);
  std::vector<double> own;
  o2::Doubt doubt;
  for (int64_t s = 0; s + 1 < offsets.size(); s++) {
    const int64_t first = offsets[s], K = offsets[s + 1] - first;
    own.resize(M * K);
    for (int64_t m = 0; m < M; m++) std::copy_n(scores.data + m * total + first, K, own.data() + m * K);
    if (variance) doubt.variance.assign(variance->data + first, variance->data + first + K), doubt.bonus.assign(bonus->data + first, bonus->data + first + K);
    o2::acting_row(own.data(), M, K, K, variance ? doubt.in(how) : how, out.data + first);
  }
}

// scores [total] are overwritten
void played_probabilities(Array<double> scores, Array<const int64_t> offsets, Array<const int64_t> actions, double sharpness,
                          Array<double> out) {
  const int64_t n = out.size();
  if (offsets.size() != n + 1 || actions.size() != n || offsets[0] < 0 || offsets[n] > scores.size())
    throw std::invalid_argument("played_probabilities: arrays of different lengths");
  for (int64_t s = 0; s < n; s++) {
    const int64_t K = offsets[s + 1] - offsets[s];
    if (actions[s] < 0 || actions[s] >= K) throw std::invalid_argument("played_probabilities: found an action beyond its set");
    double* own = scores.data + offsets[s];
    o2::softmax_in_place(own, K, sharpness);
    out[s] = own[actions[s]];
  }
}

std::tuple<NewArray<int64_t>, NewArray<double>> draw(Array<const double> probabilities, Array<const int64_t> offsets,
                                                     Array<const double> uniforms) {
  const int64_t n = uniforms.size();
  NewArray<int64_t> actions({n});
  NewArray<double> propensities({n});
  for (int64_t s = 0; s < n; s++) {
    const double* own = probabilities.data + offsets[s];
    actions.view[s] = o2::draw_one(own, offsets[s + 1] - offsets[s], uniforms[s]);
    propensities.view[s] = own[actions.view[s]];
  }
  return {std::move(actions), std::move(propensities)};
}

int64_t draw_one(Array<const double> probabilities, double uniform) {
  return o2::draw_one(probabilities.data, probabilities.size(), uniform);
}

NewArray<double> acting_numbers(Array<const double> weights, double sharpness, double epsilon, Array<const double> bonus,
                                Array<const double> share, Array<const double, 2> predicting) {
  const bool fits = sharpness > 0 ? predicting.size() == 0 : predicting.size() == o2::PREDICTING * weights.size();
  o2::expect(fits, "predicting: expected four numbers of each member, and only with sharpness 0");
  NewArray<double> made({4 + weights.size() + predicting.size() + bonus.size() + share.size()});
  double* to = made.view.data;
  for (const double number : {sharpness, epsilon, static_cast<double>(bonus.size()), static_cast<double>(share.size())}) *to++ = number;
  to = std::copy_n(weights.data, weights.size(), to);
  to = std::copy_n(predicting.data, predicting.size(), to);
  for (const auto& part : {bonus, share}) to = std::copy_n(part.data, part.size(), to);
  return made;
}

}  // namespace

void bind_acting(nb::module_& m) {
  m.def("softmax_in_place", &softmax_in_place, nb::arg("scores"), nb::arg("sharpness"),
        "Replace scores by the probabilities softmax(sharpness · scores). [K]");
  m.def("acting_numbers", &acting_numbers, nb::arg("weights"), nb::arg("sharpness"), nb::arg("epsilon"), nb::arg("bonus"),
        nb::arg("share"), nb::arg("predicting"), "Return how members' scores become the acting policy: see `o2pl.policies.sampling`.");
  m.def("acting_rows", &acting_rows, nb::arg("scores"), nb::arg("offsets"), nb::arg("acting"), nb::arg("out"),
        nb::arg("variance") = nb::none(), nb::arg("bonus") = nb::none(),
        "Write the acting policy of each set offsets[s] : offsets[s + 1] to `out` [total]. scores [M, total]; acting: `acting_numbers`;\n"
        "variance, bonus: of each action, [total].");
  m.def("played_probabilities", &played_probabilities, nb::arg("scores"), nb::arg("offsets"), nb::arg("actions"),
        nb::arg("sharpness"), nb::arg("out"),
        "Write π(a_s) of softmax(sharpness · scores) within each set s to `out`. scores [total] are overwritten.");
  m.def("draw", &draw, nb::arg("probabilities"), nb::arg("offsets"), nb::arg("uniforms"),
        "Draw one action per set `probabilities[offsets[s]:offsets[s + 1]]`. Returns actions and probabilities.");
  m.def("draw_one", &draw_one, nb::arg("probabilities"), nb::arg("uniform"), "Draw one action by inversion. [K]");
}
