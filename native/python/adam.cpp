#include "core/adam.hpp"
#include "core/replay.hpp"

#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array;

namespace {

template <class T>
void adam_step(Array<T> params, Array<const T> gradient, Array<T> first, Array<T> second, int64_t step, double step_size) {
  const int64_t n = params.size();
  o2::expect(gradient.size() == n && first.size() == n && second.size() == n,
             "gradient, first, second: expected as many entries as parameters");
  o2::expect(step >= 1, "step: expected 1 or more");
  o2::adam_step(params.data, gradient.data, first.data, second.data, n, step, step_size);
}

template <class T>
void bind_step(nb::module_& m) {
  m.def("adam_step", &adam_step<T>, nb::arg("params"), nb::arg("gradient"), nb::arg("first"), nb::arg("second"), nb::arg("step"),
        nb::arg("step_size"), "Take one step of Adam in place; `step` counts from 1.");
}

void replay(Array<const float, 2> X, Array<const int64_t> actions, Array<const double> losses, Array<const double> propensities,
            int64_t K, Array<const double> numbers, Array<double> params, Array<double> first, Array<double> second,
            Array<int64_t> count, int64_t steps, double step_size) {
  const auto [n, d] = X.shape;
  o2::expect(actions.size() == n && losses.size() == n && propensities.size() == n,
             "actions, losses, propensities: expected one per row");
  o2::expect(params.size() == K * d && first.size() == K * d && second.size() == K * d && K > 0,
             "params, first, second: expected one entry per action and feature");
  o2::expect(numbers.size() == o2::PESSIMISTIC_NUMBERS && count.size() == 1 && count[0] >= 0,
             "numbers, count: expected those of the objective, and the number of steps");
  nb::gil_scoped_release release;
  o2::replay(X.data, actions.data, losses.data, propensities.data, n, d, K, numbers.data,
             {params.data, first.data, second.data, count.data, steps, step_size});
}

}  // namespace

void bind_adam(nb::module_& m) {
  m.attr("ADAM_FIRST") = o2::ADAM_FIRST, m.attr("ADAM_SECOND") = o2::ADAM_SECOND, m.attr("ADAM_FLOOR") = o2::ADAM_FLOOR;
  bind_step<float>(m);
  bind_step<double>(m);
  m.def("replay", &replay, nb::arg("X"), nb::arg("actions"), nb::arg("losses"), nb::arg("propensities"), nb::arg("K"),
        nb::arg("numbers"), nb::arg("params"), nb::arg("first"), nb::arg("second"), nb::arg("count"), nb::arg("steps"),
        nb::arg("step_size"),
        "Take steps of Adam on the pessimistic objective of a linear softmax, in place. X [n, d]; params and moments [K d]");
}
