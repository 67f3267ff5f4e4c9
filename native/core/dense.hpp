// Objectives of linear softmax policies on dense rows, and their gradients.
//
// A row's features are a constant, its standardised inputs, and products of these or of projections of them
// (`o2pl.features.plan.FeaturePlan`). Their matrix is never made: rows are laid out in lanes, sixteen rows at a time
// ([vector][factor][16]), and products are multiplied in registers. Shift and scale of the products are folded into the
// weights. Rows are summed up in panels, and these in order: the result does not depend on the number of threads.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/dense_kernels.hpp"
#include "core/lanes.hpp"
#include "core/penalty.hpp"

namespace o2 {

struct Plan {
  int d, directions_of, intercept;  // inputs; directions (0: products of the inputs themselves); with a constant
  float clip;
  std::vector<float> shift, scale;                  // [d]
  std::vector<float> directions;                    // [directions_of, d]
  std::vector<float> product_shift, product_scale;  // [p]

  int products() const { return static_cast<int>(product_shift.size()); }
  int width() const { return intercept + d + products(); }
};

// What is constant for a row while a policy changes. Null: not needed.
struct Columns {
  const int64_t* actions;
  const double* rewards;       // outcome: fractions of their range; pessimistic: the losses y
  double level;                // subtracted from all rewards
  const float* subtracted;     // from each; null: the level
  const double* propensities;  // pessimistic: q
  const double* weights;       // of the rows; null: one each

  double residual(int64_t r) const { return rewards[r] - (subtracted ? subtracted[r] : level); }
};

// Rows of a log in lanes, in panels. The arrays that are pointed to must outlive it.
class DenseRows {
 public:
  // by_action: rows of an action are laid out together where there are many, which independent actions use.
  // held: how many bytes of laid out rows may be kept between evaluations. More of them are laid out as they are used:
  // rows that no cache holds are read as fast in their own order.
  DenseRows(Plan plan, const float* X, int64_t n, const Columns& columns, int K, bool by_action, int64_t panel_rows,
            int64_t held);

  int64_t rows() const { return n_; }
  int64_t held() const { return held_; }
  int actions() const { return K_; }
  const Plan& plan() const { return plan_; }
  const Products products() const;
  int features() const { return static_cast<int>(first_.size()); }  // with the constant
  int factors() const { return factors_; }
  int64_t panels() const { return static_cast<int64_t>(panels_.size()); }
  int64_t start_of(int64_t panel) const { return panels_[panel].start; }
  int64_t rows_of(int64_t panel) const { return panels_[panel].rows; }

  Rows panel(int64_t panel) const { return rows_of_panel(panels_[panel]); }

  // Weights by feature [K, width] to packed ones of raw products, and their gradient back.
  template <class T>
  void pack(const double* theta, T* packed) const;
  template <class T>
  void unpack(const T* gradient, double* to) const;

 private:
  struct Panel {
    int64_t start = 0;
    int rows = 0, vectors = 0;
    std::vector<int32_t> order, alike;  // empty: the rows in their own order
    Lined x, action, reward, weight, inverse;  // empty: x not kept, weights 1 each, none needed
  };
  Plan plan_;
  const float* X_;
  int64_t n_, held_ = 0;
  int K_, factors_;
  std::vector<Panel> panels_;
  std::vector<int32_t> first_, second_;
  std::vector<float> shift_, scale_;  // of the padded features; 0 and 1 but for products

  void lay(Panel& panel, const Columns& columns, bool by_action);
  Rows rows_of_panel(const Panel& panel) const;
};

// Sums over rows of an objective, and the parts of its gradient by the weights, [parts][K, width]; those of a policy with
// more parameters follow its weights.
struct Sums {
  double values[3] = {0, 0, 0};
  std::vector<double> gradients;
};

class DenseValue {
 public:
  virtual ~DenseValue() = default;
  virtual Sums sums(const double* params, int threads) const = 0;
  // The objective at params; writes its gradient. params: [K, width], then those of the objective.
  virtual double value(const double* params, double* gradient, int threads) const = 0;
  virtual int64_t n_params() const = 0;
  virtual int64_t parts() const = 0;  // of the gradient
};

// `OutcomeLog` of `o2pl.objectives.outcome` with a linear softmax.
struct OutcomeSettings {
  bool competing;
  double size, l2, level_l2;
};
std::unique_ptr<DenseValue> outcome_value(std::shared_ptr<const DenseRows> rows, const OutcomeSettings& settings);

// `PessimisticLog` of `o2pl.objectives.pessimistic` with a linear softmax.
struct PessimisticSettings {
  double alpha, size, l2, baseline;
  Phi penalty;
  const float* control;  // [K, stride]; null: none
  int64_t stride;
};
// The pessimistic objective and its gradient, both of n parameters, from sums over all rows.
double pessimistic_combine(const Sums& sums, const double* params, int64_t n, double size, double l2, const Phi& penalty,
                           double* gradient);

std::unique_ptr<DenseValue> pessimistic_value(std::shared_ptr<const DenseRows> rows, const PessimisticSettings& settings);

}  // namespace o2
