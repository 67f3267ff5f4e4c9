// Betting: lower confidence sequences for the mean of values y >= 0. See `o2pl.theory.betting` and `.betting_end`.
//
//     W_t(m) = Σ_k π_k exp(A_k - t log(1 + κ_k m)),   A_k = Σ_{s<=t} log(1 + κ_k y_s);   every m with W_t(m) >= 1/δ is rejected
#pragma once
#include <cstdint>

namespace o2 {

constexpr int64_t MOST_BETS = 32;      // the rest of 32 lanes are bets of nothing, with no share
constexpr int64_t BET_BLOCK = 16;      // rows between logarithms of the products
constexpr double LARGEST_VALUE = 1e15;  // larger values are clipped: no product of BET_BLOCK factors overflows

struct Bets {
  alignas(64) double bets[MOST_BETS], log_shares[MOST_BETS];  // κ_k and log π_k
  double log_number;                                           // log K
};

struct BetEnd {
  double bound;
  int64_t passed;  // rows of the first look whose bound is above the level, or -1
};

// Rows between looks at the capital after t rows; `stride`: the rows between looks so far. All rows up to 1,023; later, the
// rows must have grown by 1/512.
inline int64_t look_every(int64_t t, int64_t stride) { return t >= 2 * 512 * stride ? 2 * stride : stride; }

// Number of looks at n rows.
int64_t count_looks(int64_t n);

struct BetKernels {
  // A_k, [MOST_BETS]
  void (*bet_sums)(const double* values, int64_t n, const Bets& bets, double* sums);

  // The root of log W_t = threshold, by Newton's method from m; logs: log π_k + A_k. For a common mean it is at least m.
  double (*lower_root)(const double* logs, double t, double m, double threshold, bool common, const Bets& bets);

  // The root after each row, [n]; for a common mean, the largest so far.
  void (*mixture_lower)(const double* values, int64_t n, double threshold, bool common, const Bets& bets, double* bounds);

  // Sums at every look at the values y = scale (w u + w' (1 - u)): w `weights`, w' `against`, u `shares`, [n].
  // sums [looks, 2, MOST_BETS]: powers and rests of exp(A_k) = 2^power rest, 1 <= rest < 2; rows [looks]
  void (*sums_at_looks)(const double* weights, const double* against, const double* shares, double scale,
                        const Bets& bets, double* sums, int64_t* rows, int64_t looks);

  // The largest root over all looks. Given some m, a look matters only if W_t(m) > 1/δ: most are far below, which
  // log W_t(m) <= log K + max_k (log π_k + A_k - t log(1 + κ_k m)) shows without logarithms: for 1 <= z < 2,
  // log z <= (z - 1) log 2 + 0.06.
  BetEnd (*largest_root)(const double* sums, const int64_t* rows, int64_t looks, double threshold, const Bets& bets,
                         double level);
};

extern const BetKernels bets_1, bets_2, bets_3;  // of each level
const BetKernels& bet_kernels();                 // of this machine's level

}  // namespace o2
