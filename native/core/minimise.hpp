// L-BFGS from scratch, with the strong Wolfe conditions: careful, in double precision, nothing is kept between solves.
// `descend` is for repeated solves of nearly the same function.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace o2 {

struct MinimiseSettings {
  int64_t iterations, memory;
  double tolerance;   // stops when all entries of the gradient are at most that,
  double negligible;  // or when a step gains at most this fraction of max(|value|, 1)
};

struct Minimum {
  double value;
  bool converged;  // the gradient is within the tolerance, or the last step's gain negligible
  int64_t evaluations;
};

// The value at params [n]; writes the gradient [n].
using Smooth = std::function<double(const double* params, double* gradient)>;

// Minimises from params, which are replaced.
Minimum minimise(const Smooth& function, std::vector<double>& params, const MinimiseSettings& settings);

}  // namespace o2
