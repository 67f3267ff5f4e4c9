// Empirical Bernstein: lower confidence sequences for the mean of values y >= 0. See `o2pl.evaluation.bernstein`.
#pragma once
#include <cstdint>

namespace o2 {

// min_k log(1/δ_k)/λ_k + λ_k v with λ_k = 2^{-k/2}/(2B), δ_k = δ/((k + 1)(k + 2)): `o2pl.theory.inequality`.
double peeled_deviation(double v, double bound, double delta);

// The predictable plug-in sequence; log_inverse: log(1/δ). [n]
void plugin_lower(const double* values, int64_t n, double log_inverse, double* bounds);

// Prop. B.1 on y - c, peeled; if the means are not common, bounds of their average, not intersected. [n]
void realized_lower(const double* values, int64_t n, double delta, bool common, double* bounds);

// Replaces variances σ̂²_{s-1} of rows s = first + 1, … by their bets λ_s, and multiplies costs by ψ(λ_s). [n]
using BetCosts = void (*)(double* bets, double* costs, int64_t n, double first, double log_inverse);
extern const BetCosts bet_costs_1, bet_costs_2, bet_costs_3;  // of each level

}  // namespace o2
