#include "core/eight.hpp"
#include "core/math.hpp"
#include "core/vector_kernels.hpp"

#include "core/adam.inl"
#include "core/finite.inl"
#include "core/fourier.inl"
#include "core/perceptron.inl"
#include "core/recursive.inl"
#include "core/replay.inl"
#include "core/ridge.inl"

namespace o2 {

const VectorKernels O2_TABLE(vector) = {adam<float>, adam<double>, learn_rows, perceptron, absorb_row, ridge_scores, add_products,
                                          left_out, replay, add_free, class_values, cosines};

}  // namespace o2
