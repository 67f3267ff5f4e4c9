#include "core/special.hpp"

#include <algorithm>
#include <limits>
#include <iterator>

namespace o2 {
namespace {

constexpr double INFINITE = std::numeric_limits<double>::infinity(), NONE = std::numeric_limits<double>::quiet_NaN();
constexpr double LOG_SQRT_2PI = 0.918938533204672741780, SQRT_2PI = 2.50662827463100050242;

// (z + 1) M(z) = Σ_j c_j T_j(t), t = (z - 5)/(z + 5), for Mills' ratio M(z) = (1 - Φ(z))/φ(z), z >= 0. The coefficients
// are those of interpolation at 35 Chebyshev nodes in 60 digits; the first that is left out is below 1e-17.
constexpr double MILLS[] = {
1.1579976221305188, -0.1633449388451398, -0.013683136055781576, 0.03082200019810004, -0.016220073012046806,
0.005616691016460094, -0.0014133933783549216, 0.0002502625460725661, -2.468907239728387e-05, -1.0107964061837592e-06,
7.495419179740573e-07, -7.600274268728337e-08, -1.1574771441328644e-08, 3.333386472599843e-09, 7.538039628171347e-11,
-1.1104247263727494e-10, 3.509243776551059e-12, 3.6894953861750955e-12, -2.3376697776383095e-13, -1.3271797523541405e-13,
9.921706995888276e-15, 5.276004995455379e-15, -3.373097694187922e-16, -2.2804338776379936e-16, 7.496330565809145e-18};

double mills(double z) {
  if (z > 1e100) return 1 / z;
  const double t = (z - 5) / (z + 5);
  double later = 0, latest = 0;  // Clenshaw
  for (int j = static_cast<int>(std::size(MILLS)) - 1; j > 0; j--) {
    const double next = 2 * t * later - latest + MILLS[j];
    latest = later;
    later = next;
  }
  return (t * later - latest + MILLS[0]) / (z + 1);
}

// φ(z). The square is taken in two parts: e^(-z²/2) would magnify its rounding.
double density(double z) {
  const double size = std::fabs(z);
  if (size > 40) return 0;
  const double high = std::floor(size * 16) / 16, low = (size - high) * (size + high);  // high² is exact
  return exp_of(-0.5 * high * high) * exp_of(-0.5 * low) / SQRT_2PI;
}

double expm1_of(double y) {
  const double u = exp_of(y);
  return u == 1 ? y : u - 1 == -1 ? -1 : (u - 1) * (y / log_of(u));
}

// log Γ(a) = (a - ½) log a - a + log √2π + stirling(a), for a >= 10
double stirling(double a) {
  const double r = 1 / (a * a);
  return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * (691.0 / 360360 - r / 156)))))) / a;
}

// x^a e^-x / Γ(a + 1). For a >= 10, x^a e^-x = a^a e^-a e^(-a (μ - log(1 + μ))) with μ = (x - a)/a.
double gamma_front(double a, double x) {
  if (a < 10) {
    double product = 1, up = a + 1;
    for (; up < 10; up += 1) product *= up;
    return product * exp_of(a * log_of(x) - x - ((up - 0.5) * log_of(up) - up + LOG_SQRT_2PI + stirling(up)));
  }
  const double mu = (x - a) / a;
  double away = mu - log_of(x / a);
  if (std::fabs(mu) < 0.1) {  // Σ_k (-μ)^k / k from k = 2: without cancellation
    double power = mu * mu;
    away = 0;
    for (int k = 2; k < 22; k++, power *= -mu) away += power / k;
  }
  return exp_of(-a * away - stirling(a)) / (SQRT_2PI * std::sqrt(a));
}

// Σ_k x^k / ((a + 1) … (a + k)), k >= 0, for x < a + 1
double gamma_series(double a, double x) {
  double term = 1, total = 1;
  for (double k = 1; term > 1e-17 * total; k++) {
    term *= x / (a + k);
    total += term;
  }
  return total;
}

// Q(a, x) Γ(a) e^x / x^a as a continued fraction, for x >= a + 1 (Lentz)
double gamma_fraction(double a, double x) {
  constexpr double LEAST = 1e-300;
  double b = x + 1 - a, c = 1 / LEAST, d = 1 / b, value = d;
  for (double k = 1; k < 1e7; k++) {
    const double by = -k * (k - a);
    b += 2;
    d = by * d + b;
    if (std::fabs(d) < LEAST) d = LEAST;
    c = b + by / c;
    if (std::fabs(c) < LEAST) c = LEAST;
    d = 1 / d;
    value *= d * c;
    if (std::fabs(d * c - 1) < 1e-16) break;
  }
  return value;
}

// P(a, x) if lower, else Q(a, x)
double incomplete_gamma(double a, double x, bool lower) {
  if (!(a > 0) || !(x >= 0)) return NONE;
  if (x == 0) return lower ? 0 : 1;
  if (x == INFINITE) return lower ? 1 : 0;
  if (x < a + 1) {
    const double p = std::min(1.0, gamma_front(a, x) * gamma_series(a, x));
    return lower ? p : 1 - p;
  }
  const double q = std::min(1.0, gamma_front(a, x) * a * gamma_fraction(a, x));
  return lower ? 1 - q : q;
}

}  // namespace

double ndtr(double x) {
  if (x != x) return x;
  const double tail = density(x) * mills(std::fabs(x));
  return x < 0 ? tail : 1 - tail;
}

double log_ndtr(double x) {
  if (x != x) return x;
  if (x == -INFINITE) return x;
  return x < 0 ? -0.5 * x * x - LOG_SQRT_2PI + log_of(mills(-x)) : log1p_of(-density(x) * mills(x));
}

double ndtri_exp(double y) {
  if (!(y <= 0)) return NONE;
  if (y == 0) return INFINITE;
  if (y == -INFINITE) return y;
  if (y > -0.69) return -ndtri_exp(log_of(-expm1_of(y)));  // log 1/2 is below: the mirror image is in the other half
  const double t = std::sqrt(-2 * y);  // the first guess is Hastings' approximation: error below 5e-4
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int step = 0; step < 3; step++) {  // Halley's method on log Φ(x) = y: derivatives h = φ/Φ and -h (x + h)
    const double ratio = mills(-x), h = 1 / ratio, off = log_of(ratio) - (0.5 * x * x + LOG_SQRT_2PI) - y;
    x -= off * ratio / (1 + 0.5 * off * (x + h) * ratio);
  }
  return x;
}

double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return NONE;
  if (p == 0.5) return 0;
  return p < 0.5 ? ndtri_exp(log_of(p)) : -ndtri_exp(log_of(1 - p));
}

double gammainc(double a, double x) { return incomplete_gamma(a, x, true); }
double gammaincc(double a, double x) { return incomplete_gamma(a, x, false); }

}  // namespace o2
