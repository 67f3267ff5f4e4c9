#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <stdexcept>

#include "core/penalty.hpp"
#include "core/weights.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array;

namespace {

void check_rows(int64_t n, int64_t found) {
  if (n != found) throw std::invalid_argument("found " + std::to_string(found) + " rows, expected " + std::to_string(n));
}

template <class T>
std::tuple<double, double> clipped_sums(Array<const T> weights, Array<const T> residuals, double alpha) {
  check_rows(weights.size(), residuals.size());
  const auto sums = o2::clipped_sums(weights.data, residuals.data, weights.size(), static_cast<T>(alpha));
  return {sums.risk, sums.variance};
}

template <class T>
void weight_cotangent(Array<T> weights, Array<const T> residuals, double alpha, double slope, double n) {
  check_rows(weights.size(), residuals.size());
  o2::weight_cotangent(weights.data, residuals.data, weights.size(), static_cast<T>(alpha), slope, n);
}

template <class T>
void split_cotangent(Array<const T> weights, Array<const T> residuals, double alpha, double n, Array<T> of_losses,
                     Array<T> of_weights) {
  for (const int64_t found : {residuals.size(), of_losses.size(), of_weights.size()}) check_rows(weights.size(), found);
  o2::split_cotangent(weights.data, residuals.data, weights.size(), static_cast<T>(alpha), n, of_losses.data,
                      of_weights.data);
}

std::tuple<double, double> phi(double variance, double alpha, double t, double log_inv_delta, double p, double scale) {
  const auto [value, slope] = o2::phi(variance, {alpha, t, log_inv_delta, p, scale});
  return {value, slope};
}

o2::NewArray<double> penalties(Array<const double> variances, double alpha, double t, double log_inv_delta, double p,
                               double scale) {
  o2::NewArray<double> values({variances.size()});
  for (int64_t j = 0; j < variances.size(); j++)
    values.view[j] = o2::phi(std::max(variances[j], 0.0), {alpha, t, log_inv_delta, p, scale}).value;
  return values;
}

template <class T>
void bind_weights(nb::module_& m) {
  m.def("clipped_sums", &clipped_sums<T>, nb::arg("weights"), nb::arg("residuals"), nb::arg("alpha"),
        "Return Σ (min(w, α) - 1) e and Σ (min(w, α) - 1)². [n]");
  m.def("weight_cotangent", &weight_cotangent<T>, nb::arg("weights"), nb::arg("residuals"), nb::arg("alpha"),
        nb::arg("slope"), nb::arg("n"), "Replace w by 1{w < α} w (e + 2 slope (w - 1)) / n. n: the length of the log");
  m.def("split_cotangent", &split_cotangent<T>, nb::arg("weights"), nb::arg("residuals"), nb::arg("alpha"), nb::arg("n"),
        nb::arg("of_losses"), nb::arg("of_weights"), "Write 1{w < α} w e / n and 2 · 1{w < α} w (w - 1) / n.");
}

}  // namespace

void bind_objectives(nb::module_& m) {
  bind_weights<float>(m);
  bind_weights<double>(m);
  m.def("penalties", &penalties, nb::arg("variances"), nb::arg("alpha"), nb::arg("t"), nb::arg("log_inv_delta"), nb::arg("p"),
        nb::arg("scale"), "Return scale · Φ_p of each variance; a negative one counts as 0. [m]");
  m.def("phi", &phi, nb::arg("variance"), nb::arg("alpha"), nb::arg("t"), nb::arg("log_inv_delta"), nb::arg("p"),
        nb::arg("scale"), "Return λ Φ_p(σ, α, t, δ) and its derivative by σ². scale: λ");
}
