// The functions of the normal and the gamma distribution: the same bits on every machine. See `o2pl.special`.
#pragma once
#include <cmath>

#include "core/math.hpp"

namespace o2 {

// 1 / (1 + e^-x)
static inline double expit(double x) {
  const double e = exp_of(-std::fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}

// Φ(x), with a small relative error in both tails; log Φ(x)
double ndtr(double x);
double log_ndtr(double x);

// Φ⁻¹(p), absolute error about 1e-15 max(1, |x|); Φ⁻¹(e^y), also where e^y underflows
double ndtri(double p);
double ndtri_exp(double y);

// The regularised incomplete gamma functions of a > 0, x >= 0: P(a, x) and Q(a, x) = 1 - P(a, x)
double gammainc(double a, double x);
double gammaincc(double a, double x);

}  // namespace o2
