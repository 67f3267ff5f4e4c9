// How well members predict rewards: log-odds of played actions, and sums of log-likelihoods. See `o2pl.objectives.outcome`.
#pragma once
#include <cstdint>

namespace o2 {

// Predictions are kept this far from 0 and 1 when members are weighted, and their log-odds within ±FAR.
constexpr double SURE = 1e-4, FAR = 9.210240366975849;
constexpr double SUREST = 30;  // the largest log-odds of a prediction, where actions are chosen by it

// Sums over rows of log-likelihoods, of (r - m) and (r - m) z, and of m (1 - m) times 1, z and z², m = σ(level + slope z).
struct PredictionSums {
  double likelihood, by_level, by_slope, h, hz, hzz;
};

PredictionSums prediction_sums(const double* z, const double* rewards, int64_t n, double level, double slope);

// Σ weights and Σ weighted values, added row by row to `sums`. weights: null for one each
struct WeightedSums {
  double weights = 0, values = 0;
};
WeightedSums weighted_sums(const double* values, const double* weights, int64_t n, WeightedSums sums = {});

// z = f_a - log Σ_{b≠a} exp f_b - τ of action a among K > 1 that compete, in ROWS_IN_LANES rows. scores: [K, rows]; out [rows]
constexpr int64_t ROWS_IN_LANES = 32;
void played_log_odds(const double* scores, int64_t K, const int64_t* actions, double tau, double* out);

// What a monitor of changes knows of one member: see `o2pl.engine.change`.
struct Watched {
  double score, level, turn, h, hz, hzz;  // D; the calibration m = σ(level + (1 + turn) z), and its curvature
};

// After a block of n rows: D fades with `memory` rows, the curvature with `block` rows; one Newton step of the calibration.
Watched watched(const Watched& before, const double* z, const double* rewards, int64_t n, double memory, double block);

// h [n] = m (1 - m), m = Σ ρ σ(z). z: log-odds that M members predict for the played actions, [M, stride]
void mean_curvature(const double* z, int64_t M, int64_t n, int64_t stride, const double* weights, double* h);

namespace kernels {

template <int LEVEL>
void played_log_odds(const double* scores, int64_t K, const int64_t* actions, double tau, double* out);
template <int LEVEL>
void prediction_sums(const double* z, const double* rewards, int64_t n, double level, double slope, PredictionSums& sums);
template <int LEVEL>
void mean_curvature(const double* z, int64_t M, int64_t n, int64_t stride, const double* weights, double* h);

}  // namespace kernels
}  // namespace o2
