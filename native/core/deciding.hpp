// Decisions: inputs to features to scores of all members to the acting policy to an action.
//
// Inputs are rounded to single precision, as a log keeps them; all else is in double precision, and sums keep their
// order: a decision is the same bits alone and in a batch, at every level of instructions.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/acting.hpp"
#include "core/dense.hpp"
#include "core/uncertainty.hpp"

namespace o2 {

// Features of a group of members, and their weights side by side; see `o2pl.features.plan.FeaturePlan`.
struct ScoringGroup {
  int64_t d, directions_of, intercept, width, columns;
  double clip;
  std::vector<double> shift, scale;                  // [d]
  std::vector<double> directions;                    // [d, directions_of padded to 8]
  std::vector<double> product_shift, product_scale;  // [p]
  std::vector<double> W;                             // [width, columns]: K of each member, then padding
  std::vector<int64_t> members;
};

// A group of members with these features. weights: [K, width] of each
std::shared_ptr<const ScoringGroup> scoring_group(const Plan& plan, int64_t K, const std::vector<int64_t>& members,
                                                  const std::vector<const double*>& weights);

// Work arrays of a decision; one per thread.
struct ScoringRoom {
  std::vector<double> rows, projected, sums, scores, pi;
  std::vector<double> raw;  // the last decision's scores, [members, among]: deciding overwrites `scores`
  Doubt doubt;
};

class Scorer {
 public:
  Scorer(int64_t d, int64_t n_actions, int64_t members, std::vector<std::shared_ptr<const ScoringGroup>> groups);

  int64_t inputs() const { return d_; }
  int64_t n_actions() const { return K_; }
  int64_t members() const { return M_; }
  const std::vector<std::shared_ptr<const ScoringGroup>>& groups() const { return groups_; }

  // Scores of n rows: member m's K of row r from out + m · of_member + r · of_row on. Inputs [n, d], finite.
  void scores(const float* inputs, int64_t n, double* out, int64_t of_member, int64_t of_row, ScoringRoom& room) const;

  // The acting policy of a row, or among n rows of an action set (K = 1), written to room.pi. uncertainty: or null
  void policy(const float* inputs, int64_t n, const Acting& acting, const Uncertainty* uncertainty, ScoringRoom& room) const;

 private:
  int64_t d_, K_, M_, widest_ = 0, most_columns_ = 0;
  std::vector<std::shared_ptr<const ScoringGroup>> groups_;

  void features(const ScoringGroup& own, const float* inputs, double* row, ScoringRoom& room) const;
};

}  // namespace o2
