// Decisions of members that are linear in hashed features: entries to slots to scores to the acting policy.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/acting.hpp"
#include "core/hashing.hpp"
#include "core/uncertainty.hpp"

namespace o2 {

struct HashedWeights {
  std::span<const int32_t> slot_of;  // [2^bits]
  const float* scale;                // (shift, factor) [slots, 2]
  int64_t slots;
  const double* W;                   // [known, columns]; slots beyond are ignored
  int64_t known, columns;
};

// Scores of rows of hashed features, [n, columns].
std::vector<double> hashed_scores(const HashedWeights& weights, SparseRows rows);

struct Chosen {
  int64_t action;
  double probability;
};

// One action for a row. Columns: members · K; uncertainty: of predictions, or null
Chosen decide_row(const HashedWeights& weights, int64_t members, SparseRows row, const Acting& acting, const Uncertainty* uncertainty, double uniform);

// The acting policy of a set, out [K]. Columns: members
void set_policy(const HashedWeights& weights, SparseRows rows, const Acting& acting, const Uncertainty* uncertainty, double* out);

// One row of a set.
Chosen decide_set(const HashedWeights& weights, SparseRows rows, const Acting& acting, const Uncertainty* uncertainty, double uniform);

}  // namespace o2
