// `PessimisticLog` of `o2pl.objectives.pessimistic` with the action-wise softmax on dense rows: a set's rows are its actions.
// In double precision.
#pragma once
#include <memory>

#include "core/dense.hpp"

namespace o2 {

// Set s has the rows offsets[s], …, offsets[s + 1]. offsets [n + 1], the others [n]
struct ActionSetsLog {
  const int64_t *offsets, *actions;
  const double *residuals, *inverse;  // y - b, 1/q
  int64_t n;
};

struct ActionSetsSettings {
  double alpha, size, l2;
  Phi penalty;
};

// The rows are of one action, in panels of whole vectors. `log` is copied.
std::unique_ptr<DenseValue> action_sets_value(std::shared_ptr<const DenseRows> rows, const ActionSetsLog& log,
                                              const ActionSetsSettings& settings);

}  // namespace o2
