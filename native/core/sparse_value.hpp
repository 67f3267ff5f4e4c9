// The outcome objective on sparse rows, as a function of W [d, K], flattened, then τ.
#pragma once
#include <cstdint>
#include <vector>

#include "core/lbfgs.hpp"
#include "core/sparse.hpp"

namespace o2 {

struct SparseOutcomeSettings {
  double size, l2, level_l2;  // size: Σ weights of all rows
  int64_t panel;              // rows of a panel, at least
};

// Long logs are split into at most four panels, each with sums and a gradient of its own: results do not depend on the
// number of threads.
class SparseOutcomeValue {
 public:
  SparseOutcomeValue(const SparseColumns& rows, const SparseOutcomeLog& log, int64_t K, const SparseOutcomeSettings& settings)
      : rows_(rows), log_(log), K_(K), settings_(settings) {}

  // Writes the gradient, [d K + 1] like params.
  double value(const double* params, int64_t n_params, double* gradient, int threads);

  // `descend` from params. Of independent actions, only weights of features that were played with them, or are not 0, move:
  // it descends in these.
  Descent descend(std::vector<double>& params, const Pairs& pairs, const Stop& stop, int threads);

 private:
  SparseColumns rows_;
  SparseOutcomeLog log_;
  int64_t K_;
  SparseOutcomeSettings settings_;
  int64_t features_ = -1;     // that rows have, of one action; -1: not counted yet
  std::vector<double> room_;  // gradients of all panels but the first
};

}  // namespace o2
