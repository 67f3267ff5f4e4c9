#include <cmath>
#include <limits>

#include "core/bets.hpp"
#include "core/eight.hpp"
#include "core/math.hpp"

namespace o2 {
namespace {

constexpr double LN2 = 0.693147180559945309417, CLOSE = 1e-9, CHORD = 0.06;
constexpr double NO_CAPITAL = -std::numeric_limits<double>::infinity();

inline double sum_of(const double* x) {
  Eight total = eight_at(x);
  for (int64_t k = EIGHT; k < MOST_BETS; k += EIGHT) total = total + eight_at(x + k);
  return sum(total);
}

inline double largest_of(const double* x) {
  Eight top = eight_at(x);
  for (int64_t k = EIGHT; k < MOST_BETS; k += EIGHT) top = most(top, eight_at(x + k));
  double lanes[EIGHT], largest = NO_CAPITAL;
  to_lanes(top, lanes);
  for (const double lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

inline double clipped(double y) { return y > LARGEST_VALUE ? LARGEST_VALUE : y; }

// product_k *= Π_i (1 + κ_k y_i)
inline void multiply(const double* y, int64_t some, const Bets& bets, double* product) {
  const Eight one = eight_of(1);
  for (int64_t first = 0; first < MOST_BETS; first += EIGHT) {
    Eight own = eight_at(product + first);
    const Eight by = eight_at(bets.bets + first);
    for (int64_t i = 0; i < some; i++) own = own * (one + by * eight_of(y[i]));
    to_lanes(own, product + first);
  }
}

inline void take_logs(double* product, double* logs) {
  for (int64_t k = 0; k < MOST_BETS; k++) {
    logs[k] += log_of(product[k]);
    product[k] = 1.0;
  }
}

inline void logs_at(double m, const Bets& bets, double* at_m) {
  for (int64_t k = 0; k < MOST_BETS; k++) at_m[k] = log1p_of(bets.bets[k] * m);
}

void bet_sums(const double* values, int64_t n, const Bets& bets, double* sums) {
  double product[MOST_BETS], y[BET_BLOCK];
  for (int64_t k = 0; k < MOST_BETS; k++) sums[k] = 0, product[k] = 1;
  for (int64_t first = 0; first < n; first += BET_BLOCK) {
    const int64_t some = n - first < BET_BLOCK ? n - first : BET_BLOCK;
    for (int64_t i = 0; i < some; i++) y[i] = clipped(values[first + i]);
    multiply(y, some, bets, product);
    take_logs(product, sums);
  }
}

double lower_root(const double* logs, double t, double m, double threshold, bool common, const Bets& bets) {
  double at_m[MOST_BETS], exponents[MOST_BETS], parts[MOST_BETS], slopes[MOST_BETS];
  for (int step = 0; step < 60; step++) {
    logs_at(m, bets, at_m);
    for (int64_t k = 0; k < MOST_BETS; k++) exponents[k] = logs[k] - t * at_m[k];
    const double largest = largest_of(exponents);
    for (int64_t k = 0; k < MOST_BETS; k++) parts[k] = exp_of(exponents[k] - largest);
    for (int64_t k = 0; k < MOST_BETS; k++) slopes[k] = parts[k] * (t * bets.bets[k] / (1.0 + bets.bets[k] * m));
    const double capital = sum_of(parts), slope = sum_of(slopes);
    const double above = largest + log_of(capital) - threshold;
    if (std::fabs(above) <= CLOSE || (above < 0 && (common || m == 0))) break;
    const double next = m + above * capital / slope;
    m = next > 0 ? next : 0;
  }
  return m;
}

void mixture_lower(const double* values, int64_t n, double threshold, bool common, const Bets& bets, double* bounds) {
  double logs[MOST_BETS], product[MOST_BETS], y[BET_BLOCK], m = 0;
  for (int64_t k = 0; k < MOST_BETS; k++) logs[k] = bets.log_shares[k], product[k] = 1;
  int64_t t = 0, stride = 1;
  while (t + stride <= n) {  // one look
    const int64_t next = t + stride;
    for (int64_t s = t; s < next - 1; s++) bounds[s] = m;
    while (t < next) {
      const int64_t some = stride < BET_BLOCK ? stride : BET_BLOCK;
      for (int64_t i = 0; i < some; i++) y[i] = clipped(values[t + i]);
      multiply(y, some, bets, product);
      t += some;
      if (some == BET_BLOCK || t == next) take_logs(product, logs);
    }
    m = lower_root(logs, static_cast<double>(t), m, threshold, common, bets);
    bounds[t - 1] = m;
    if (common) stride = look_every(t, stride);
  }
  for (int64_t s = t; s < n; s++) bounds[s] = m;
}

void sums_at_looks(const double* weights, const double* against, const double* shares, double scale, const Bets& bets,
                   double* sums, int64_t* rows, int64_t looks) {
  double rests[MOST_BETS], y[BET_BLOCK];
  uint64_t powers[MOST_BETS] = {};
  for (int64_t k = 0; k < MOST_BETS; k++) rests[k] = 1;
  int64_t t = 0, stride = 1, pieces = 0;
  for (int64_t look = 0; look < looks; look++) {
    for (const int64_t next = t + stride; t < next; pieces++) {
      const int64_t some = stride < BET_BLOCK ? stride : BET_BLOCK;
      for (int64_t i = 0; i < some; i++) {
        const double u = shares[t + i];
        y[i] = clipped(scale * (clipped(weights[t + i]) * u + clipped(against[t + i]) * (1.0 - u)));
      }
      multiply(y, some, bets, rests);
      for (int64_t k = 0; k < MOST_BETS; k++) {  // exact: rest = 2^power z, 1 <= z < 2
        const auto bits = std::bit_cast<uint64_t>(rests[k]);
        powers[k] += bits >> 52;
        rests[k] = std::bit_cast<double>((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
      }
      t += some;
    }
    double* own = sums + 2 * MOST_BETS * look;
    for (int64_t k = 0; k < MOST_BETS; k++) {
      own[k] = static_cast<double>(static_cast<int64_t>(powers[k]) - 1023 * pieces);
      own[MOST_BETS + k] = rests[k];
    }
    rows[look] = t;
    stride = look_every(t, stride);
  }
}

// log W_t(m) - threshold, or an upper bound of it that is negative. at_m: log(1 + κ_k m)
inline double above(const double* own, int64_t t, const double* at_m, double threshold, const Bets& bets) {
  const double *powers = own, *rests = own + MOST_BETS, rows = static_cast<double>(t);
  double exponents[MOST_BETS], parts[MOST_BETS];
  for (int64_t k = 0; k < MOST_BETS; k++)
    exponents[k] = bets.log_shares[k] + (powers[k] + rests[k] - 1.0) * LN2 - rows * at_m[k];
  const double largest = largest_of(exponents), bound = largest + CHORD + bets.log_number - threshold;
  if (bound < 0) return bound;
  for (int64_t k = 0; k < MOST_BETS; k++)
    parts[k] = exp_of(exponents[k] + (log_of(rests[k]) - (rests[k] - 1.0) * LN2) - largest);
  return largest + log_of(sum_of(parts)) - threshold;
}

BetEnd largest_root(const double* sums, const int64_t* rows, int64_t looks, double threshold, const Bets& bets,
                    double level) {
  constexpr int64_t PER_LOOK = 2 * MOST_BETS;
  double logs[MOST_BETS], at_m[MOST_BETS], m = 0;
  for (int64_t look = looks - 1; look >= 0; look--) {
    const double* own = sums + PER_LOOK * look;
    if (look < looks - 1 && above(own, rows[look], at_m, threshold, bets) <= CLOSE) continue;
    for (int64_t k = 0; k < MOST_BETS; k++) logs[k] = bets.log_shares[k] + own[k] * LN2 + log_of(own[MOST_BETS + k]);
    m = lower_root(logs, static_cast<double>(rows[look]), m, threshold, true, bets);
    logs_at(m, bets, at_m);
  }
  if (m > level) {
    logs_at(level, bets, at_m);
    for (int64_t look = 0; look < looks; look++)
      if (above(sums + PER_LOOK * look, rows[look], at_m, threshold, bets) > CLOSE) return {m, rows[look]};
  }
  return {m, -1};
}

}  // namespace

const BetKernels O2_TABLE(bets) = {bet_sums, lower_root, mixture_lower, sums_at_looks, largest_root};

}  // namespace o2
