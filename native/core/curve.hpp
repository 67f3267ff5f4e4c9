// The terms of a reward curve, s_i P_{j_i}(a) φ_{m_i}(x): see `o2pl.policies.curve`.
#pragma once
#include <cstdint>

namespace o2 {

// Legendre polynomials P_0, P_1, ..., [count], at a position in [0, 1], with mean square 1 on it.
void legendre(double place, int64_t count, double* out);

// Terms of a curve, [D] each: the power of the action, the feature, and s.
struct CurveTerms {
  int64_t count, degree;
  const int64_t *powers, *features;
  const double* scales;
};

// The design matrix [n, D] of rows with these features [n, width] and positions of the action [n].
void curve_design(const double* features, int64_t width, const double* places, int64_t n, const CurveTerms& terms, double* out);

// The weights of the features at positions whose polynomials are basis [places, degree + 1], of curves thetas [S, D].
// out [S, places, width]
void curve_weights(const double* thetas, int64_t S, const double* basis, int64_t places, int64_t width, const CurveTerms& terms,
                   double* out);

}  // namespace o2
