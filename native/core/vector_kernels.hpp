// Loops over the entries of vectors, compiled once per level of instructions: the table of those that are not about the
// scores of many actions (`dense_kernels.hpp`).
#pragma once
#include <cstdint>

namespace o2 {

struct AdamState;
struct ClassSums;
struct Phi;
struct Perceptron;
struct Pessimism;
struct Recursion;
struct Window;

struct VectorKernels {
  // one step of Adam, see adam.hpp; [n]
  void (*adam_float)(float* params, const float* gradient, float* first, float* second, int64_t n, double rate, double correction);
  void (*adam_double)(double* params, const double* gradient, double* first, double* second, int64_t n, double rate,
                      double correction);
  // least squares of the rows Z [m, D], see recursive.hpp; weights may be null: all 1
  void (*learn_rows)(const Recursion&, const double* Z, const double* targets, const double* weights, int64_t m, int64_t first);
  // rows [m, inputs] through a perceptron, see perceptron.hpp; room: twice the widest layer
  void (*perceptron)(const Perceptron&, const double* rows, int64_t m, double* room, double* out);
  // one row of a ridge regression, see ridge.hpp; room [d]
  void (*absorb_row)(double* inverse, double* weights, const double* x, int64_t d, double target, double* room);
  void (*ridge_scores)(const double* inverses, const double* weights, const double* x, int64_t K, int64_t d, double* means,
                       double* deviations);
  // adds Σ x xᵀ of rows [n, d], blocks of eight up to the diagonal's, and Σ y x. products [d, d in eights], moments [d in eights]
  void (*add_products)(const float* rows, const double* targets, int64_t n, int64_t d, double* products, double* moments);
  // each row's prediction from a fit without it, see ridge.hpp. inverse [d, d in eights], coefficients [d in eights]
  void (*left_out)(const float* rows, const double* targets, int64_t n, int64_t d, const double* inverse,
                   const double* coefficients, double* out);
  // the paper's replay, see replay.hpp
  void (*replay)(const Window&, const Pessimism&, const AdamState&);
  // finite classes, see finite.hpp: adds a row where weights are not clipped and counts the others; V_j of every member, out [J]
  int64_t (*add_free)(const ClassSums&, const double* likelihoods, double loss, double propensity, double alpha);
  void (*class_values)(const ClassSums&, double baseline, const Phi&, double* out);
  // √2 cos(angle), [n]
  void (*cosines)(const float* angles, int64_t n, float* out);
};

extern const VectorKernels vector_1, vector_2, vector_3;  // of each level
const VectorKernels& vector_kernels();                    // of this machine's level

}  // namespace o2
