// Descent along L-BFGS directions, with pairs (step, change of gradient) kept between solves.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace o2 {

// The value at params [n]; writes the gradient [n].
using Function = std::function<double(const double* params, double* gradient)>;

// A ring buffer of pairs, the newest before `at`.
struct Pairs {
  int64_t memory, size, stride;
  float *steps, *changes;  // [memory, stride], of which `size` are used
  double* inner;           // step · change, [memory]
  int64_t *at, *count;
};

struct Stop {
  int64_t iterations;
  double tolerance;   // all entries of the gradient are below
  double negligible;  // a step gains or predicts at most that much; 0: no such rule
};

struct Descent {
  double value;
  bool converged;
  int64_t evaluations;
};

// out = -H gradient by the two-loop recursion, H scaled by the newest pair. Returns the slope along it.
double lbfgs_direction(const double* gradient, const Pairs& pairs, double* out);

// Stores a step, and the change of the gradient, if they tell about the curvature. Across a kink, where a row starts to
// be clipped, a tiny step changes the gradient by much; so does rounding. Such a pair would make the next steps tiny too:
// a tiny step is stored only if its curvature is plausible.
void remember(const double* start, const double* step, const double* change, const Pairs& pairs);

// Minimises from params [n], which are replaced. The pairs are used and updated.
Descent descend(const Function& function, std::vector<double>& params, const Pairs& pairs, const Stop& stop);

namespace kernels {  // once per level of instructions

template <int LEVEL, class X, class Y>
double dot(const X* x, const Y* y, int64_t n);
template <int LEVEL>
void add(double by, const float* x, double* to, int64_t n);  // to += by x
template <int LEVEL>
double largest(const double* x, int64_t n);  // absolute entry
template <int LEVEL>
void scale(double by, const double* x, double* to, int64_t n);  // to = by x; both may be one
template <int LEVEL>
void combine(const double* x, double by, const double* y, double* to, int64_t n);  // to = x + by y, or one of them

}  // namespace kernels
}  // namespace o2
