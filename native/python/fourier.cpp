#include "core/vector_kernels.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

NewArray<float, 2> cosines(Array<const float, 2> angles) {
  NewArray<float, 2> out(angles.shape);
  nb::gil_scoped_release release;
  o2::vector_kernels().cosines(angles.data, angles.size(), out.view.data);
  return out;
}

}  // namespace

void bind_fourier(nb::module_& m) {
  m.def("cosines", &cosines, nb::arg("angles"), "Return √2 cos(angles). [n, m]");
}
