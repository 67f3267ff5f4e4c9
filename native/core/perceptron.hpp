// Multi-layer perceptrons: z ← activation(W z + b), layer by layer, the last one without activation.
#pragma once
#include <cstdint>

namespace o2 {

enum class Activation { silu, relu, tanh };  // silu: x / (1 + exp(-x))

// params: for each layer its weights [inputs, outputs], then its biases [outputs]. sizes [layers + 1], inputs first
struct Perceptron {
  const double* params;
  const int64_t* sizes;
  int64_t layers;
  Activation activation;
};

}  // namespace o2
