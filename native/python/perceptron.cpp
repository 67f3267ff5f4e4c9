#include "core/perceptron.hpp"

#include <algorithm>
#include <vector>

#include "core/vector_kernels.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Activation, o2::Array, o2::NewArray;

namespace {

NewArray<double, 2> perceptron(Array<const double, 2> rows, Array<const double> params, Array<const int64_t> sizes,
                               int activation) {
  o2::expect(sizes.size() >= 2 && *std::min_element(sizes.data, sizes.data + sizes.size()) >= 0,
             "sizes: expected those of two or more layers");
  o2::expect(0 <= activation && activation <= 2, "activation: expected 0, 1 or 2");
  const int64_t layers = sizes.size() - 1;
  int64_t needed = 0;
  for (int64_t layer = 0; layer < layers; layer++) needed += (sizes[layer] + 1) * sizes[layer + 1];
  o2::expect(params.size() == needed, "params: expected weights and biases of layers of these sizes");
  o2::expect(rows.shape[1] == sizes[0], "rows: expected as many columns as the first layer has inputs");
  NewArray<double, 2> out({rows.shape[0], sizes[layers]});
  std::vector<double> room(2 * *std::max_element(sizes.data, sizes.data + sizes.size()));
  nb::gil_scoped_release release;
  o2::vector_kernels().perceptron({params.data, sizes.data, layers, static_cast<Activation>(activation)}, rows.data,
                                  rows.shape[0], room.data(), out.view.data);
  return out;
}

}  // namespace

void bind_perceptron(nb::module_& m) {
  m.def("perceptron", &perceptron, nb::arg("rows"), nb::arg("params"), nb::arg("sizes"), nb::arg("activation"),
        "Apply a multi-layer perceptron row by row. activation: 0 silu, 1 relu, 2 tanh. [n, inputs] -> [n, outputs]");
}
