// How uncertain predicted rewards are: of a logistic model for each action, the variance of its level and of its weights.
//
//     A_a = λ + Σ h,  B_ai = λ + Σ h (φ_i - φ̄_i)²  over the rows with action a,   h = m (1 - m),  λ = min(1, 8/K)
//     s_a² = 1/A_a + c_a,   c_a = (1 - 2/K) min(1, 2/d)/d Σ_i (φ_i - φ̄_i)²/B_ai
//     optimism: .6 log(1 + n) max(0, 1 - 4 h̄) √c_a
//
// φ: the d standardised inputs; m: the members' weighted mean prediction when the row was last looked at; n: rows; h̄: mean
// of their h. Rows are looked at again when there are four times as many. Of hashed features, φ are the d entries of the row, as
// members see them, and φ̄ = 0. The actions of action sets share their weights: K = 1, φ̄ = 0, λ = 3, and no level.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/acting.hpp"
#include "core/dense.hpp"

namespace o2 {

struct SparseColumns;

// Inputs to φ, in double precision: (x - shift) scale, within ± clip.
struct Standardised {
  std::vector<double> shift, scale;  // [d]
  double clip;

  explicit Standardised(const Plan& plan);
  Standardised(std::vector<double> shift, std::vector<double> scale, double clip);
  double operator()(const float* inputs, int64_t i) const;
};

// Of one moment. It does not change.
class Uncertainty {
 public:
  // centre: none for hashed features
  Uncertainty(Standardised inputs, std::vector<double> centre, std::vector<double> level, std::vector<double> spread, double optimism);

  int64_t inputs() const { return static_cast<int64_t>(centre_.size()); }
  int64_t n_actions() const { return static_cast<int64_t>(level_.size()); }
  bool of_sets() const { return n_actions() == 1; }
  // s² and the optimism of each action, for one row of inputs.
  void at(const float* inputs, Doubt& found) const;
  // The same for each of n rows of an action set, which share their weights (K = 1): min(1, 2/e)/e Σ φ²/B over the e entries that
  // are not 0. Slots and values have the constant first.
  void at_each(const float* rows, int64_t n, Doubt& found) const;
  void at_each(const int32_t* slots, const float* values, const int64_t* offsets, int64_t n, Doubt& found) const;
  // As `at`, for n slots and their values, without the constant.
  void at(const int32_t* slots, const float* values, int64_t n, Doubt& found) const;

  // What it is made of: see the constructor.
  const Standardised& standardised() const { return inputs_; }
  const std::vector<double>& centre() const { return centre_; }  // φ̄ [d]
  const std::vector<double>& level() const { return level_; }    // A [K]
  const std::vector<double>& spread() const { return spread_; }  // B [d, K]
  double optimism() const { return optimism_; }                  // .6 log(1 + n) max(0, 1 - 4 h̄)

 private:
  Standardised inputs_;
  std::vector<double> centre_, level_, spread_;
  std::vector<double> inverse_;  // 1/B of inputs, [d, padded K]; slots are too many
  double optimism_;
  int64_t columns_;

  void combine(const double* of_inputs, int64_t d, Doubt& found) const;
};

// The sums, as rows arrive.
class Curvature {
 public:
  static constexpr int64_t RENEWED = 4;    // times as many rows: all are looked at again
  static constexpr int MOST_ACTIONS = 10;  // of more, the count of plays says more

  // It holds the log's rows from `base` to `rows` (-1: none is known); all were looked at at `renewed` rows.
  int64_t base = 0, rows = 0, renewed = 0;
  double total = 0;                         // Σ h
  std::vector<double> level, spread, centre;  // Σ h [K], Σ h (φ - φ̄)² [d, K], φ̄ [d]; of hashed features no φ̄

  Curvature(int64_t n_actions, int64_t inputs) : level(n_actions), spread(n_actions * inputs), centre(inputs) {}

  // Whether all rows since `since` are to be looked at again, of n: when there are four times as many, or more than a fifth of those
  // in the sums is forgotten.
  bool is_old(int64_t since, int64_t n) const {
    return since < base || n < rows || n - since >= RENEWED * (renewed - base) || 4 * (since - base) > n - since;
  }
  int64_t next() const;  // number of rows at which new ones are to be added
  // Starts again, with the mean of n rows, which begin at `since`.
  void begin(int64_t since, const Standardised& inputs, const float* X, int64_t n);
  void begin(int64_t since, int64_t n);
  // Adds the next n rows. h: m (1 - m) of each, times its weight
  void add(const Standardised& inputs, const float* X, const int64_t* actions, const double* h, int64_t n);
  // The same of sparse rows, each with the constant first; there are this many slots.
  void add(const SparseColumns& rows, int64_t slots, const int64_t* actions, const double* h);
  std::shared_ptr<const Uncertainty> uncertainty(const Standardised& inputs) const;
};

}  // namespace o2
