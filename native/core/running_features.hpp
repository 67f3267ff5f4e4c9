// The running state of built-in features: moments of the inputs, and of products of them or of directions of them.
#pragma once
#include <cstdint>
#include <vector>

#include "core/buffer.hpp"
#include "core/dense.hpp"

namespace o2 {

// Moments of d columns, with the arrays. See `ColumnMoments`.
struct Moments {
  double count = 0;
  std::vector<double> mean, squares;
  Buffer<bool> binary;
  std::vector<float> shift, scale;

  void absorb(const float* rows, int64_t n);
};

// `Chain((Standardise(), Quadratic(), Intercept()))` of `o2pl.features`, or a part of it.
class RunningFeatures {
 public:
  int d = 0;
  bool standardised = false, intercept = false;
  float clip = 0;
  Moments inputs, products;       // of no columns: none
  std::vector<float> directions;  // [m, d]; empty: products of the inputs themselves
  int64_t rows = 0;               // of the log, observed so far
  double growth = 0;              // rows are observed only once they have grown by this factor

  // Observes rows of X up to n.
  void observe(const float* X, int64_t n);

  Plan plan() const;

 private:
  std::vector<float> made_, factors_, widened_;
};

// The features of n rows by a plan, out [n, width].
void transform(const Plan& plan, const float* X, int64_t n, float* out);

}  // namespace o2
