#include "core/sparse.hpp"

#include <vector>

#include "core/levels.hpp"

namespace o2 {

void sparse_scores(const SparseColumns& rows, ByFeature<const double> W, double* out) {
  at_level([&](auto L) { kernels::sparse_scores<L>(rows, W, out); });
}

void sparse_sums(const SparseColumns& rows, const double* cotangent, ByFeature<double> G) {
  at_level([&](auto L) { kernels::sparse_sums<L>(rows, cotangent, G); });
}

OutcomeTotals sparse_outcome(const SparseColumns& rows, const SparseOutcomeLog& log, ByFeature<const double> W, double tau,
                             ByFeature<double> G) {
  std::vector<float> room((W.K + 3) * SPARSE_BLOCK);
  std::vector<double> of_row(W.K);
  return at_level([&](auto L) { return kernels::sparse_outcome<L>(rows, log, W, tau, G, room.data(), of_row.data()); });
}

PessimisticTotals sparse_risk(const SparseColumns& rows, const SparsePessimisticLog& log, ByFeature<const double> W,
                              const SparsePass& pass) {
  return at_level([&](auto L) { return kernels::sparse_risk<L>(rows, log, W, pass); });
}

void sparse_risk_gradient(const SparseColumns& rows, const SparsePessimisticLog& log, const SparsePass& pass, double slope,
                          ByFeature<double> G) {
  std::vector<double> of_row(G.K);
  at_level([&](auto L) { kernels::sparse_risk_gradient<L>(rows, log, pass, slope, G, of_row.data()); });
}

}  // namespace o2
