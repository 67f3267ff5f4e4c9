#include "core/minimise.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <stdexcept>

#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

std::tuple<NewArray<double>, double, bool, int64_t> minimise(nb::object function, Array<const double> start,
                                                             int64_t iterations, int64_t memory, double tolerance,
                                                             double negligible) {
  const int64_t n = start.size();
  const auto called = [&](const double* params, double* gradient) {
    NewArray<double> there({n});
    std::copy_n(params, n, there.view.data);
    const nb::object result = function(there.object);
    PyObject* slopes = PyArray_FROMANY(nb::object(result[1]).ptr(), NPY_FLOAT64, 1, 1, NPY_ARRAY_CARRAY_RO);
    if (!slopes) throw nb::python_error();
    const nb::object kept = nb::steal(slopes);
    auto* entries = reinterpret_cast<PyArrayObject*>(slopes);
    if (PyArray_DIM(entries, 0) != n) throw std::invalid_argument("the gradient has another length than the parameters");
    std::copy_n(static_cast<const double*>(PyArray_DATA(entries)), n, gradient);
    return nb::cast<double>(nb::float_(nb::object(result[0])));
  };
  std::vector<double> params(start.data, start.data + n);
  const auto found = o2::minimise(called, params, {iterations, memory, tolerance, negligible});
  NewArray<double> result({n});
  std::copy(params.begin(), params.end(), result.view.data);
  return {std::move(result), found.value, found.converged, found.evaluations};
}

}  // namespace

void bind_minimise(nb::module_& m) {
  m.def("minimise", &minimise, nb::arg("function"), nb::arg("start"), nb::arg("iterations"), nb::arg("memory"),
        nb::arg("tolerance"), nb::arg("negligible"),
        "Minimise function(params) -> (value, gradient) by L-BFGS. Returns params, value, convergence and evaluations.");
}
