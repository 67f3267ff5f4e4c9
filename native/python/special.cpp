#include "core/special.hpp"

#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

template <auto function>
NewArray<double> of_each(Array<const double> values) {
  NewArray<double> out({values.size()});
  nb::gil_scoped_release threads;
  for (int64_t i = 0; i < values.size(); i++) out.view[i] = function(values[i]);
  return out;
}

template <auto function>
NewArray<double> of_ratios(double a, Array<const double> x) {
  NewArray<double> out({x.size()});
  for (int64_t i = 0; i < x.size(); i++) out.view[i] = function(a, x[i]);
  return out;
}

}  // namespace

void bind_special(nb::module_& m) {
  m.def("expit", &of_each<o2::expit>, nb::arg("x"), "Return 1 / (1 + e^-x). [n]");
  m.def("ndtr", &of_each<o2::ndtr>, nb::arg("x"), "Return Φ(x). [n]");
  m.def("log_ndtr", &of_each<o2::log_ndtr>, nb::arg("x"), "Return log Φ(x). [n]");
  m.def("ndtri", &of_each<o2::ndtri>, nb::arg("p"), "Return Φ⁻¹(p). [n]");
  m.def("ndtri_exp", &of_each<o2::ndtri_exp>, nb::arg("y"), "Return Φ⁻¹(e^y). [n]");
  m.def("gammainc", &of_ratios<o2::gammainc>, nb::arg("a"), nb::arg("x"), "Return P(a, x). [n]");
  m.def("gammaincc", &of_ratios<o2::gammaincc>, nb::arg("a"), nb::arg("x"), "Return Q(a, x) = 1 - P(a, x). [n]");
}
