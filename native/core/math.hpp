// exp and log in double precision, the same bits on every machine: only + - * / and bit patterns, nothing fused.
// `exp_of` and `log_of` are branch-free, so loops over them vectorise at every level: integers are taken from the bits
// of a sum, not cast. Static: every file has copies of its own, so that the linker cannot replace them by one that needs
// wider instructions.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace o2 {

// e^x; relative error below 4e-16. 0 below -708, infinity above 709; NaN stays NaN.
static inline double exp_of(double x) {
  constexpr double LOG2E = 1.4426950408889634074, LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
  constexpr double ROUND = 6755399441055744.0;  // 1.5 · 2^52: adding it rounds to the nearest integer
  const double within = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
  const double rounded = within * LOG2E + ROUND, k = rounded - ROUND;
  const double r = (within - k * LN2_HIGH) - k * LN2_LOW;  // |r| <= ln(2)/2
  double p = 1.0 / 6227020800;  // Taylor, from 1/13!
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  const auto power = std::bit_cast<double>((std::bit_cast<uint64_t>(rounded) + 1023) << 52);
  const double value = p * power;
  return x < -708.0 ? 0.0 : x > 709.0 ? std::numeric_limits<double>::infinity() : x == x ? value : x;
}

// log x of x > 0, normal; error below 4e-16 max(1, |log x|). -infinity at 0, NaN below.
static inline double log_of(double x) {
  constexpr double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;
  const auto bits = std::bit_cast<uint64_t>(x);
  double k = std::bit_cast<double>((bits >> 52) | 0x4330000000000000ull) - (0x1p52 + 1023.0);
  double z = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  const bool upper = z > 1.4142135623730951;
  z = upper ? 0.5 * z : z;
  k = upper ? k + 1.0 : k;
  const double f = z - 1.0, s = f / (z + 1.0), s2 = s * s;  // log z = 2 atanh s, |s| <= 0.172
  double p = 2.0 / 23;
  p = p * s2 + 2.0 / 21;
  p = p * s2 + 2.0 / 19;
  p = p * s2 + 2.0 / 17;
  p = p * s2 + 2.0 / 15;
  p = p * s2 + 2.0 / 13;
  p = p * s2 + 2.0 / 11;
  p = p * s2 + 2.0 / 9;
  p = p * s2 + 2.0 / 7;
  p = p * s2 + 2.0 / 5;
  p = p * s2 + 2.0 / 3;
  // 2 atanh s = 2 s + s^3 p, and 2 s = f - s f exactly enough for small f
  const double value = k * LN2_HIGH + ((f - s * (f - s2 * p)) + k * LN2_LOW);
  if (x > 0) return x <= std::numeric_limits<double>::max() ? value : x;
  return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
}

// log(1 + x) of x > -1, with a small relative error also near 0: what rounding 1 + x to u adds, x / (u - 1) takes back.
static inline double log1p_of(double x) {
  const double u = 1.0 + x;
  return u == 1.0 ? x : u > std::numeric_limits<double>::max() ? u : log_of(u) * (x / (u - 1.0));
}

// x^y of x >= 0; relative error below 4e-16 max(1, |y log x|).
static inline double power_of(double x, double y) {
  return y == 0 ? 1.0 : exp_of(y * log_of(x));
}

// cos x for |x| <= 2^20, branch-free; absolute error below 3e-16.
static inline double cos_near(double x) {
  constexpr double HIGH = 0x1.921fb544p+0, MIDDLE = 0x1.0b4611a6p-34, LOW = 0x1.3198a2e037073p-69;  // π/2 in three parts
  constexpr double TWO_OVER_PI = 0.63661977236758134308, ROUND = 6755399441055744.0;
  const double rounded = x * TWO_OVER_PI + ROUND, k = rounded - ROUND;
  const uint64_t quarter = std::bit_cast<uint64_t>(rounded) & 3;
  const double r = ((x - k * HIGH) - k * MIDDLE) - k * LOW, r2 = r * r;  // |r| <= π/4
  double c = 1.0 / 6402373705728000.0;                                   // Taylor, 1/18!, alternating
  c = 1.0 / 20922789888000.0 - c * r2;
  c = 1.0 / 87178291200.0 - c * r2;
  c = 1.0 / 479001600.0 - c * r2;
  c = 1.0 / 3628800.0 - c * r2;
  c = 1.0 / 40320.0 - c * r2;
  c = 1.0 / 720.0 - c * r2;
  c = 1.0 / 24.0 - c * r2;
  c = 1.0 - r2 * (0.5 - c * r2);
  double s = 1.0 / 355687428096000.0;  // 1/17!
  s = 1.0 / 1307674368000.0 - s * r2;
  s = 1.0 / 6227020800.0 - s * r2;
  s = 1.0 / 39916800.0 - s * r2;
  s = 1.0 / 362880.0 - s * r2;
  s = 1.0 / 5040.0 - s * r2;
  s = 1.0 / 120.0 - s * r2;
  s = 1.0 / 6.0 - s * r2;
  s = r - r * (r2 * s);
  const double value = quarter & 1 ? s : c;                      // cos, -sin, -cos, sin
  return quarter == 1 || quarter == 2 ? -value : value;
}

// cos x; beyond 2^20 that of the remainder of x by 2π in double.
static inline double cos_of(double x) {
  return cos_near(std::fabs(x) <= 0x1p20 ? x : std::remainder(x, 6.28318530717958647692));
}

}  // namespace o2
