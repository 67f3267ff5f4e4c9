#include "core/sparse.hpp"
#include "core/shrinking.hpp"

#include "core/penalty.hpp"
#include "core/running_control.hpp"
#include "core/sparse_value.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "python/arrays.hpp"
#include "python/module.hpp"
#include "python/pairs.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

void require(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(what);
}

o2::SparseColumns columns_of(Array<const int32_t> indices, Array<const float> values, Array<const int64_t> offsets) {
  const int64_t n = offsets.size() - 1;
  bool rising = n >= 0 && offsets[0] >= 0;
  for (int64_t r = 0; r < n; r++) rising = rising && offsets[r] <= offsets[r + 1];
  require(rising && offsets[n] <= indices.size() && indices.size() == values.size(), "sparse rows: offsets beyond the entries");
  return {indices.data, values.data, offsets.data, n};
}

template <class T>
o2::ByFeature<T> by_feature(Array<T> flat, int64_t K) {
  require(K > 0 && flat.size() % K == 0, "sparse rows: weights of another number of actions");
  return {flat.data, flat.size() / K, K};
}

void check_actions(Array<const int64_t> actions, int64_t n, int64_t K) {
  bool fits = actions.size() == n;
  for (int64_t r = 0; fits && r < n; r++) fits = actions[r] >= 0 && actions[r] < K;
  require(fits, "sparse rows: actions beyond the weights, or not one per row");
}

// Whether these are columns of finite values at features below `width`, in the types of the core.
bool sparse_rows_fit(nb::handle indices, nb::handle values, nb::handle offsets, int64_t width) {
  Array<const int32_t> i;
  Array<const float> x;
  Array<const int64_t> ends;
  if (!nb::try_cast(indices, i, false) || !nb::try_cast(values, x, false) || !nb::try_cast(offsets, ends, false)) return false;
  const int64_t n = ends.size() - 1, total = i.size();
  bool fits = n >= 0 && x.size() == total && ends[0] == 0 && ends[n] == total;
  for (int64_t r = 0; fits && r < n; r++) fits = ends[r] <= ends[r + 1];
  if (!fits) return false;
  const auto last = static_cast<int32_t>(std::min<int64_t>(width - 1, std::numeric_limits<int32_t>::max()));
  int odd = 0;  // in vectors, of 32 bits
  for (int64_t j = 0; j < total; j++) odd |= int{i[j] < 0} | int{i[j] > last} | int{!(x[j] - x[j] == 0)};
  return odd == 0;
}

NewArray<double, 2> sparse_scores(Array<const int32_t> indices, Array<const float> values, Array<const int64_t> offsets,
                                  Array<const double, 2> W) {
  const auto rows = columns_of(indices, values, offsets);
  const auto [d, K] = W.shape;
  NewArray<double, 2> out({rows.n, K});
  nb::gil_scoped_release free;
  o2::sparse_scores(rows, {W.data, d, K}, out.view.data);
  return out;
}

void sparse_sums(Array<const int32_t> indices, Array<const float> values, Array<const int64_t> offsets,
                 Array<const double, 2> cotangent, Array<double, 2> out) {
  const auto rows = columns_of(indices, values, offsets);
  const auto [d, K] = out.shape;
  require(cotangent.shape[0] == rows.n && cotangent.shape[1] == K, "sparse_sums: the cotangent has another shape");
  nb::gil_scoped_release free;
  o2::sparse_sums(rows, cotangent.data, {out.data, d, K});
}

template <class T, int N = 1>
Array<T, N> exactly(nb::handle given) {  // without a copy, which nothing would keep
  return nb::cast<Array<T, N>>(given, false);
}

// A log on sparse rows with the outcome objective. The arrays are Python's; they live as long as it.
class SparseOutcome {
 public:
  SparseOutcome(nb::object indices, nb::object values, nb::object offsets, nb::object actions, nb::object rewards, nb::object weights,
                bool competing, int64_t K, std::tuple<double, double, double> settings, int64_t panel)
      : kept_(nb::make_tuple(indices, values, offsets, actions, rewards, weights)), K_(K) {
    const auto rows = columns_of(exactly<const int32_t>(indices), exactly<const float>(values), exactly<const int64_t>(offsets));
    const auto of_actions = exactly<const int64_t>(actions);
    const auto of_rewards = exactly<const float>(rewards);
    const auto of_weights = weights.is_none() ? Array<const float>() : exactly<const float>(weights);
    check_actions(of_actions, rows.n, K);
    require(K > 0 && panel > 0 && of_rewards.size() == rows.n && (weights.is_none() || of_weights.size() == rows.n),
            "SparseOutcome: arrays of different lengths");
    const auto [size, l2, level_l2] = settings;
    value_ = std::make_unique<o2::SparseOutcomeValue>(rows, o2::SparseOutcomeLog{of_actions.data, of_rewards.data, of_weights.data, competing},
                                                      K, o2::SparseOutcomeSettings{size, l2, level_l2, panel});
  }

  double value(Array<const double> params, Array<double> gradient, int threads) {
    require(params.size() == gradient.size() && params.size() % K_ == (K_ == 1 ? 0 : 1), "SparseOutcome: arrays of different lengths");
    nb::gil_scoped_release free;
    return value_->value(params.data, params.size(), gradient.data, threads);
  }

  std::tuple<NewArray<double>, double, bool, int64_t> descend(Array<const double> params, Array<float, 2> steps, Array<float, 2> changes,
                                                              Array<double> inner, Array<int64_t> at, int64_t iterations,
                                                              double tolerance, double negligible, int threads) {
    require(params.size() % K_ == (K_ == 1 ? 0 : 1), "SparseOutcome: found another number of parameters");
    const o2::Pairs pairs = o2::pairs_of(params.size(), steps, changes, inner, at);
    std::vector<double> found(params.data, params.data + params.size());
    o2::Descent done{};
    {
      nb::gil_scoped_release free;
      done = value_->descend(found, pairs, {iterations, tolerance, negligible}, threads);
    }
    return {NewArray<double>(std::span<const double>(found)), done.value, done.converged, done.evaluations};
  }

 private:
  nb::object kept_;
  int64_t K_;
  std::unique_ptr<o2::SparseOutcomeValue> value_;
};

// A log on sparse rows with the pessimistic objective. The arrays are Python's; they live as long as it.
class SparseRisk {
 public:
  SparseRisk(nb::object indices, nb::object values, nb::object offsets, nb::object actions, nb::object residuals,
             nb::object inverse, double alpha, nb::object control, double baseline, int64_t K)
      : kept_(nb::make_tuple(indices, values, offsets, actions, residuals, inverse, control)), K_(K) {
    rows_ = columns_of(exactly<const int32_t>(indices), exactly<const float>(values), exactly<const int64_t>(offsets));
    const auto of_actions = exactly<const int64_t>(actions);
    const auto of_residuals = exactly<const float>(residuals), of_inverse = exactly<const float>(inverse);
    check_actions(of_actions, rows_.n, K);
    require(K > 0 && of_residuals.size() == rows_.n && of_inverse.size() == rows_.n, "SparseRisk: arrays of different lengths");
    log_ = {of_actions.data, of_residuals.data, of_inverse.data, static_cast<float>(alpha), nullptr, 0,
            static_cast<float>(baseline)};
    if (!control.is_none()) {
      const auto given = exactly<const float, 2>(control);
      require(given.shape[0] == K && given.shape[1] >= rows_.n, "SparseRisk: the control has another shape");
      log_.control = given.data, log_.stride = given.shape[1];
    }
    const int64_t padded = (rows_.n + o2::SPARSE_BLOCK - 1) / o2::SPARSE_BLOCK * o2::SPARSE_BLOCK;
    policy_.resize(padded * K), parts_.resize(padded * 3);
  }

  std::tuple<double, double, double> sums(Array<const double> W) {
    const auto from = by_feature(W, K_);
    nb::gil_scoped_release free;
    const auto totals = o2::sparse_risk(rows_, log_, from, {policy_.data(), parts_.data()});
    return {totals.risk, totals.variance, totals.modelled};
  }

  void add_gradient(double slope, Array<double> G) {
    const auto to = by_feature(G, K_);
    nb::gil_scoped_release free;
    o2::sparse_risk_gradient(rows_, log_, {policy_.data(), parts_.data()}, slope, to);
  }

 private:
  nb::object kept_;
  int64_t K_;
  o2::SparseColumns rows_;
  o2::SparsePessimisticLog log_;
  std::vector<float> policy_, parts_;
};

double predict_losses(Array<const int32_t> indices, Array<const float> values, Array<const int64_t> offsets,
                      Array<const int64_t> actions, Array<const double> losses, int64_t before, Array<const double> numbers,
                      double prior, double total, Array<float, 2> weights, Array<float, 2> spread, Array<float, 2> predicted) {
  const auto rows = columns_of(indices, values, offsets);
  const auto [slots, K] = weights.shape;
  check_actions(actions, rows.n, K);
  require(losses.size() == rows.n && numbers.size() == o2::PESSIMISTIC_NUMBERS && spread.shape == weights.shape,
          "predict_losses: arrays of different lengths");
  require(predicted.shape[0] == rows.n && predicted.shape[1] == K, "predict_losses: predictions of another shape");
  for (int64_t j = offsets[0]; j < offsets[rows.n]; j++)
    require(indices[j] >= 0 && indices[j] < slots, "predict_losses: found a feature beyond the weights");
  o2::RunningModel model{weights.data, spread.data, slots, K, prior, total, before};
  nb::gil_scoped_release free;
  o2::predict_losses(rows, actions.data, losses.data, numbers.data, model, predicted.data);
  return model.total;
}

double shrunk(Array<const double> params, double size, double shrink, Array<double> gradient) {
  require(params.size() == gradient.size(), "shrunk: arrays of different lengths");
  nb::gil_scoped_release free;
  return o2::shrunk(params.data, params.size(), size, shrink, gradient.data);
}

}  // namespace

void bind_sparse(nb::module_& m) {
  m.def("sparse_rows_fit", &sparse_rows_fit, nb::arg("indices"), nb::arg("values"), nb::arg("offsets"), nb::arg("width"),
        "Return whether these are columns of finite values at features below `width`, int32, float32 and int64.");
  m.def("sparse_scores", &sparse_scores, nb::arg("indices"), nb::arg("values"), nb::arg("offsets"), nb::arg("W"),
        "Return rows · W [n, K]; features beyond W [d, K] are ignored.");
  m.def("sparse_sums", &sparse_sums, nb::arg("indices"), nb::arg("values"), nb::arg("offsets"), nb::arg("cotangent"),
        nb::arg("out"), "Add rowsᵀ · cotangent [n, K], the pullback of `sparse_scores`, to `out` [d, K].");
  m.def("predict_losses", &predict_losses, nb::arg("indices"), nb::arg("values"), nb::arg("offsets"), nb::arg("actions"),
        nb::arg("losses"), nb::arg("before"), nb::arg("numbers"), nb::arg("prior"), nb::arg("total"), nb::arg("weights"),
        nb::arg("spread"), nb::arg("predicted"),
        "Write y - b of each row and action to `predicted` [n, K], and update the model after each row. Returns Σ losses.");
  m.def("shrunk", &shrunk, nb::arg("params"), nb::arg("size"), nb::arg("shrink"), nb::arg("gradient"),
        "Turn sums of gradients into means, and add shrink · params. Returns |params|².");
  nb::class_<SparseOutcome>(m, "SparseOutcome", "The outcome objective of a log on sparse rows.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, bool, int64_t,
                    std::tuple<double, double, double>, int64_t>(),
           nb::arg("indices"), nb::arg("values"), nb::arg("offsets"), nb::arg("actions"), nb::arg("rewards"), nb::arg("weights").none(),
           nb::arg("competing"), nb::arg("n_actions"), nb::arg("settings"), nb::arg("panel"),
           "settings: Σ weights, l2 and level_l2; panel: rows of a panel, at least")
      .def("value", &SparseOutcome::value, nb::arg("params"), nb::arg("gradient"), nb::arg("threads"),
           "Return the value at W [d K], then τ, and write the gradient.")
      .def("descend", &SparseOutcome::descend, nb::arg("params"), nb::arg("steps"), nb::arg("changes"), nb::arg("inner"), nb::arg("at"),
           nb::arg("iterations"), nb::arg("tolerance"), nb::arg("negligible"), nb::arg("threads"),
           "Like `descend`, for independent actions in the weights that can move.");
  nb::class_<SparseRisk>(m, "SparseRisk", "The pessimistic objective of a log on sparse rows.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, double, nb::object, double,
                    int64_t>(),
           nb::arg("indices"), nb::arg("values"), nb::arg("offsets"), nb::arg("actions"), nb::arg("residuals"),
           nb::arg("inverse"), nb::arg("alpha"), nb::arg("control").none(), nb::arg("baseline"), nb::arg("n_actions"))
      .def("sums", &SparseRisk::sums, nb::arg("W"),
           "Return the sums over all rows: risk, variance, and mean of the control. W [d K]")
      .def("add_gradient", &SparseRisk::add_gradient, nb::arg("slope"), nb::arg("gradient"),
           "Add the gradient of risk + slope · variance at the last W to `gradient` [d K].");
}
