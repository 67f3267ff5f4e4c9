#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/penalty.hpp"
#include "core/weights.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array;

namespace {

std::tuple<double, double> clipped_sums(Array<const double> weights, Array<const double> residuals, double alpha) {
  const int64_t n = weights.size(), found = residuals.size();
  if (n != found) throw std::invalid_argument("found " + std::to_string(found) + " rows, expected " + std::to_string(n));
  const auto sums = o2::clipped_sums(weights.data, residuals.data, n, alpha);
  return {sums.risk, sums.variance};
}

o2::NewArray<double> penalties(Array<const double> variances, double alpha, double t, double log_inv_delta, double p,
                               double scale) {
  o2::NewArray<double> values({variances.size()});
  for (int64_t j = 0; j < variances.size(); j++)
    values.view[j] = o2::phi(std::max(variances[j], 0.0), {alpha, t, log_inv_delta, p, scale}).value;
  return values;
}

}  // namespace

void bind_objectives(nb::module_& m) {
  m.def("clipped_sums", &clipped_sums, nb::arg("weights"), nb::arg("residuals"), nb::arg("alpha"),
        "Return Σ (min(w, α) - 1) e and Σ (min(w, α) - 1)². [n]");
  m.def("penalties", &penalties, nb::arg("variances"), nb::arg("alpha"), nb::arg("t"), nb::arg("log_inv_delta"), nb::arg("p"),
        nb::arg("scale"), "Return scale · Φ_p of each variance; a negative one counts as 0. [m]");
}
