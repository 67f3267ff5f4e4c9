#include "core/action_sets.hpp"
#include "core/dense.hpp"
#include "core/gaussian.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>

#include "core/lbfgs.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"
#include "python/pairs.hpp"
#include "python/packed.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

// Rows in lanes, with the arrays that they point to.
struct HeldRows {
  std::shared_ptr<const o2::DenseRows> rows;
  nb::object contexts;
};

HeldRows dense_rows(nb::object contexts, nb::typed<nb::tuple, nb::any, nb::ellipsis> plan, Array<const int64_t> actions, Array<const double> rewards,
                    nb::object subtracted, nb::object propensities, nb::object weights, int n_actions, bool by_action, int64_t panel_rows, int64_t held) {
  const auto X = nb::cast<Array<const float, 2>>(contexts, false);  // no copy: it is kept
  const auto [n, d] = X.shape;
  o2::Plan made = o2::plan_of(plan);
  o2::expect(made.d == d, "plan: found other numbers of inputs than the rows have");
  o2::expect(actions.size() == n && rewards.size() == n, "columns: found other lengths than rows");
  o2::expect(n_actions >= 1 && panel_rows >= 1, "n_actions, panel_rows: expected at least 1");
  for (int64_t r = 0; r < n; r++) o2::expect(actions[r] >= 0 && actions[r] < n_actions, "actions: found one out of range");
  const auto column = [n = n]<class T>(const nb::object& given, T, const char* wrong) -> const T* {
    if (given.is_none()) return nullptr;
    const auto found = nb::cast<Array<const T>>(given, false);
    o2::expect(found.size() == n, wrong);
    return found.data;
  };
  const bool of_all = PyFloat_Check(subtracted.ptr());
  const o2::Columns columns{actions.data, rewards.data, of_all ? nb::cast<double>(subtracted) : 0.0,
                            of_all ? nullptr : column(subtracted, 0.0f, "subtracted: found another length than rows"),
                            column(propensities, 0.0, "propensities: found another length than rows"),
                            column(weights, 0.0, "weights: found another length than rows")};
  std::shared_ptr<const o2::DenseRows> rows;
  {
    const nb::gil_scoped_release released;
    rows = std::make_shared<const o2::DenseRows>(std::move(made), X.data, n, columns, n_actions, by_action, panel_rows, held);
  }
  return {std::move(rows), std::move(contexts)};
}

// An objective on rows, as a function of the parameters.
struct Value {
  std::unique_ptr<o2::DenseValue> value;
  nb::object rows, control;  // what it points to
  int threads;

  int64_t size() const { return value->n_params(); }
};

Value outcome_value(nb::object rows, bool competing, double size, double l2, double level_l2, int threads) {
  const auto& held = nb::cast<const HeldRows&>(rows);
  return {o2::outcome_value(held.rows, {competing, size, l2, level_l2}), rows, nb::none(), threads};
}

Value pessimistic_value(nb::object rows, double alpha, double size, double l2, double baseline,
                        std::tuple<double, double, double, double, double> penalty, nb::object control, int threads) {
  const auto& held = nb::cast<const HeldRows&>(rows);
  const auto [at, t, log_inv_delta, p, scale] = penalty;
  o2::PessimisticSettings settings{alpha, size, l2, baseline, {at, t, log_inv_delta, p, scale}, nullptr, 0};
  if (!control.is_none()) {
    const auto given = nb::cast<Array<const float, 2>>(control, false);
    o2::expect(given.shape[0] == held.rows->actions() && given.shape[1] >= held.rows->rows(), "control: found another shape");
    settings.control = given.data, settings.stride = given.shape[1];
  }
  return {o2::pessimistic_value(held.rows, settings), rows, control, threads};
}

Value gaussian_value(nb::object rows, Array<const double> centred, Array<const double> residuals,
                     Array<const double> propensities, double alpha, double size, double l2,
                     std::tuple<double, double, double, double, double> penalty, double scale, bool learn_scale, int threads) {
  const auto& held = nb::cast<const HeldRows&>(rows);
  const auto [at, t, log_inv_delta, p, factor] = penalty;
  const int64_t n = held.rows->rows();
  o2::expect(held.rows->actions() == 1, "rows: expected those of one action");
  o2::expect(centred.size() == n && residuals.size() == n && propensities.size() == n, "columns: found other lengths than rows");
  const o2::GaussianSettings settings{alpha, size, l2, {at, t, log_inv_delta, p, factor}, scale, learn_scale};
  return {o2::gaussian_value(held.rows, {centred.data, residuals.data, propensities.data}, settings), rows, nb::none(), threads};
}

Value action_sets_value(nb::object rows, Array<const int64_t> offsets, Array<const int64_t> actions, Array<const double> residuals,
                        Array<const double> inverse, double alpha, double size, double l2,
                        std::tuple<double, double, double, double, double> penalty, int threads) {
  const auto& held = nb::cast<const HeldRows&>(rows);
  const auto [at, t, log_inv_delta, p, scale] = penalty;
  const int64_t n = actions.size();
  o2::expect(held.rows->actions() == 1, "rows: expected those of one action");
  o2::expect(offsets.size() == n + 1 && residuals.size() == n && inverse.size() == n, "columns: found other lengths than sets");
  o2::expect(offsets[0] == 0 && offsets[n] == held.rows->rows(), "offsets: expected those of all rows");
  for (int64_t s = 0; s < n; s++)
    o2::expect(offsets[s] < offsets[s + 1] && actions[s] >= 0 && actions[s] < offsets[s + 1] - offsets[s],
               "actions: found one beyond its set");
  for (int64_t panel = 1; panel < held.rows->panels(); panel++)
    o2::expect(held.rows->start_of(panel) % o2::LANES == 0, "rows: expected panels of whole vectors");
  return {o2::action_sets_value(held.rows, {offsets.data, actions.data, residuals.data, inverse.data, n},
                                {alpha, size, l2, {at, t, log_inv_delta, p, scale}}), rows, nb::none(), threads};
}

std::tuple<double, NewArray<double>> call(const Value& self, Array<const double> params) {
  o2::expect(params.size() == self.size(), "params: found another number");
  NewArray<double> gradient({self.size()});
  double value;
  {
    const nb::gil_scoped_release released;
    value = self.value->value(params.data, gradient.view.data, self.threads);
  }
  return {value, std::move(gradient)};
}

std::tuple<NewArray<double>, NewArray<double, 2>> sums(const Value& self, Array<const double> params) {
  o2::expect(params.size() == self.size(), "params: found another number");
  o2::Sums found;
  {
    const nb::gil_scoped_release released;
    found = self.value->sums(params.data, self.threads);
  }
  const int64_t parts = self.value->parts();
  NewArray<double> values({3});
  NewArray<double, 2> gradients({parts, static_cast<int64_t>(found.gradients.size()) / parts});
  std::copy_n(found.values, 3, values.view.data);
  std::copy(found.gradients.begin(), found.gradients.end(), gradients.view.data);
  return {std::move(values), std::move(gradients)};
}

double lbfgs_direction(Array<const double> gradient, Array<float, 2> steps, Array<float, 2> changes, Array<double> inner,
                       Array<int64_t> at, Array<double> out) {
  o2::expect(out.size() == gradient.size(), "out: found another length than the gradient");
  return o2::lbfgs_direction(gradient.data, o2::pairs_of(gradient.size(), steps, changes, inner, at), out.data);
}

void remember(Array<const double> step, Array<const double> start, Array<const double> change, Array<float, 2> steps,
              Array<float, 2> changes, Array<double> inner, Array<int64_t> at) {
  o2::expect(step.size() == start.size() && change.size() == start.size(), "step, change: found another length than the start");
  o2::remember(start.data, step.data, change.data, o2::pairs_of(start.size(), steps, changes, inner, at));
}

std::tuple<NewArray<double>, double, bool, int64_t> descend(nb::object function, Array<const double> params,
                                                            Array<float, 2> steps, Array<float, 2> changes,
                                                            Array<double> inner, Array<int64_t> at, int64_t iterations,
                                                            double tolerance, double negligible) {
  const int64_t n = params.size();
  const o2::Pairs pairs = o2::pairs_of(n, steps, changes, inner, at);
  const o2::Stop stop{iterations, tolerance, negligible};
  std::vector<double> found(params.data, params.data + n);
  o2::Descent done{};
  if (nb::isinstance<Value>(function)) {
    const auto& own = nb::cast<const Value&>(function);
    o2::expect(own.size() == n, "params: found another number");
    const nb::gil_scoped_release released;
    done = o2::descend([&](const double* x, double* g) { return own.value->value(x, g, own.threads); }, found, pairs, stop);
  } else {
    const auto called = [&](const double* x, double* g) {
      NewArray<double> there({n});
      std::copy_n(x, n, there.view.data);
      const nb::object result = function(there.object);
      const o2::KeptArray<double> kept(result[1]);
      const auto gradient = kept.view();
      o2::expect(gradient.size() == n, "gradient: found another length than the parameters");
      std::copy_n(gradient.data, n, g);
      return nb::cast<double>(nb::float_(result[0]));
    };
    done = o2::descend(called, found, pairs, stop);
  }
  NewArray<double> result({n});
  std::copy(found.begin(), found.end(), result.view.data);
  return {std::move(result), done.value, done.converged, done.evaluations};
}

}  // namespace

void bind_dense(nb::module_& m) {
  nb::class_<HeldRows>(m, "DenseRows", nb::is_weak_referenceable(), "Rows of a log in lanes, for objectives of linear softmax policies.")
      .def_prop_ro("held", [](const HeldRows& self) { return self.rows->held(); }, "Bytes of rows that are kept laid out");
  m.def("dense_rows", &dense_rows, nb::arg("contexts"), nb::arg("plan"), nb::arg("actions"), nb::arg("rewards"),
        nb::arg("subtracted"), nb::arg("propensities").none(), nb::arg("weights").none(), nb::arg("n_actions"), nb::arg("by_action"),
        nb::arg("panel_rows"), nb::arg("held"), "Lay out rows. contexts [n, d] float32, plan: a `FeaturePlan`, subtracted: from the rewards, a float or float32 [n]");
  nb::class_<Value>(m, "DenseValue", "An objective and its gradient as a function of the parameters.")
      .def("__call__", &call, nb::arg("params"))
      .def("sums", &sums, nb::arg("params"), "Return the sums over all rows, and the parts of the gradient [parts, K width].")
      .def_prop_ro("n_params", &Value::size)
      .def_prop_ro("incremental", [](const Value&) { return false; }, "It is made anew for new rows.");
  m.def("outcome_value", &outcome_value, nb::arg("rows"), nb::arg("competing"), nb::arg("size"), nb::arg("l2"),
        nb::arg("level_l2"), nb::arg("threads"), "Return `OutcomeLog` with a linear softmax.");
  m.def("pessimistic_value", &pessimistic_value, nb::arg("rows"), nb::arg("alpha"), nb::arg("size"), nb::arg("l2"),
        nb::arg("baseline"), nb::arg("penalty"), nb::arg("control").none(), nb::arg("threads"),
        "Return `PessimisticLog` with a linear softmax. control: float32 [K, at least n]");
  m.def("action_sets_value", &action_sets_value, nb::arg("rows"), nb::arg("offsets"), nb::arg("actions"), nb::arg("residuals"),
        nb::arg("inverse"), nb::arg("alpha"), nb::arg("size"), nb::arg("l2"), nb::arg("penalty"), nb::arg("threads"),
        "Return `PessimisticLog` with the action-wise softmax, on the rows of all sets, in panels of whole vectors.");
  m.def("gaussian_value", &gaussian_value, nb::arg("rows"), nb::arg("centred"), nb::arg("residuals"),
        nb::arg("propensities"), nb::arg("alpha"), nb::arg("size"), nb::arg("l2"), nb::arg("penalty"), nb::arg("scale"),
        nb::arg("learn_scale"), nb::arg("threads"),
        "Return `PessimisticLog` with a Gaussian policy, on rows of one action. With learn_scale, the last parameter is its log.");
  m.def("lbfgs_direction", &lbfgs_direction, nb::arg("gradient"), nb::arg("steps"), nb::arg("changes"), nb::arg("inner"),
        nb::arg("at"), nb::arg("out"), "Compute out = -H gradient by the two-loop recursion. Returns the slope along it.");
  m.def("remember", &remember, nb::arg("step"), nb::arg("start"), nb::arg("change"), nb::arg("steps"), nb::arg("changes"),
        nb::arg("inner"), nb::arg("at"), "Store a step and the change of the gradient, if they tell about the curvature.");
  m.def("descend", &descend, nb::arg("function"), nb::arg("params"), nb::arg("steps"), nb::arg("changes"), nb::arg("inner"),
        nb::arg("at"), nb::arg("iterations"), nb::arg("tolerance"), nb::arg("negligible"),
        "Minimise along L-BFGS directions. Returns params, value, whether converged, and the number of evaluations.");
}
