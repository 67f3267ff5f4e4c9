#include "core/perceptron.hpp"

namespace o2 {
namespace {

void activate(const double* __restrict in, double* __restrict out, int64_t n, Activation activation) {
  if (activation == Activation::silu)
    for (int64_t j = 0; j < n; j++) out[j] = in[j] / (1.0 + exp_of(-in[j]));
  else if (activation == Activation::relu)
    for (int64_t j = 0; j < n; j++) out[j] = in[j] > 0 ? in[j] : 0.0;
  else  // tanh x = 1 - 2 / (e^2x + 1)
    for (int64_t j = 0; j < n; j++) out[j] = 1.0 - 2.0 / (exp_of(2.0 * in[j]) + 1.0);
}

// Row by row: a row's result does not depend on others. Loops run over the outputs of a layer, sums over its inputs.
void perceptron(const Perceptron& of, const double* rows, int64_t m, double* room, double* out) {
  int64_t widest = 0;
  for (int64_t layer = 0; layer <= of.layers; layer++) widest = of.sizes[layer] > widest ? of.sizes[layer] : widest;
  double *z = room, *after = room + widest;
  for (int64_t r = 0; r < m; r++) {
    memcpy(z, rows + r * of.sizes[0], of.sizes[0] * sizeof(double));
    const double* weights = of.params;
    for (int64_t layer = 0; layer < of.layers; layer++) {
      const int64_t inputs = of.sizes[layer], outputs = of.sizes[layer + 1];
      const double* biases = weights + inputs * outputs;
      double* to = layer + 1 == of.layers ? out + r * outputs : after;
      int64_t j = 0;
      for (; j + 4 * EIGHT <= outputs; j += 4 * EIGHT) {
        Eight sums[4];
        for (int c = 0; c < 4; c++) sums[c] = eight_at(biases + j + c * EIGHT);
        for (int64_t i = 0; i < inputs; i++)
          for (int c = 0; c < 4; c++) sums[c] = sums[c] + eight_of(z[i]) * eight_at(weights + i * outputs + j + c * EIGHT);
        for (int c = 0; c < 4; c++) to_lanes(sums[c], to + j + c * EIGHT);
      }
      for (; j + EIGHT <= outputs; j += EIGHT) {
        Eight sums = eight_at(biases + j);
        for (int64_t i = 0; i < inputs; i++) sums = sums + eight_of(z[i]) * eight_at(weights + i * outputs + j);
        to_lanes(sums, to + j);
      }
      for (; j < outputs; j++) {
        double sum = biases[j];
        for (int64_t i = 0; i < inputs; i++) sum += z[i] * weights[i * outputs + j];
        to[j] = sum;
      }
      if (layer + 1 < of.layers) activate(after, z, outputs, of.activation);
      weights = biases + outputs;
    }
  }
}

}  // namespace
}  // namespace o2
