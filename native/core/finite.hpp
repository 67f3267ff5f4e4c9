// The pessimistic objective of all members of a finite class, updated as rows arrive: see `o2pl.kernels.finite`.
#pragma once
#include <cstdint>

#include "core/acting.hpp"
#include "core/penalty.hpp"

namespace o2 {

struct Clipped {
  double weight, member, loss;
};

// In place. Σ(w-1)y, Σ(w-1), Σ(w-1)² over free rows, number and Σy of the clipped ones: [5, J]. Clipped pairs are in a
// heap, the smallest weight on top, with room for all that may come; counts: rows, and the heap's size.
struct ClassSums {
  double* sums;
  int64_t J;
  Clipped* heap;
  int64_t* counts;
};

// Adds a row of a loss, and the likelihoods of its action under every member, [J].
void add_row(const ClassSums& of, const double* likelihoods, double loss, double propensity, double alpha);

// Adds rows one by one, each with its clipping level: independent of batching. L [n, J]. members [n], or null: the best
// member after each row. Returns Σ losses, `total` included.
double add_rows(const ClassSums& of, const double* L, const double* losses, const double* propensities, int64_t n,
                const double* numbers, double total, int64_t* members);

// Rounds of a simulation: L [m, K, J] of every action under every member, losses [m, K] of all actions, uniforms [m].
struct FiniteRounds {
  int64_t m, K;
  const double *L, *losses, *uniforms;
  int64_t warm_start;
  int64_t* actions;
  double* propensities;  // [m]
};

// Decides each round, adds its row, takes the best member. params [J], the members' log weights, become 0 and -∞.
double finite_rounds(const ClassSums& of, const FiniteRounds& rounds, double* params, const Acting& acting, const double* numbers,
                     double total);

}  // namespace o2
