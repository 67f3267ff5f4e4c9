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

double shrunk(const double* __restrict params, int64_t n, double size, double shrink, double* __restrict gradient) {
  constexpr int64_t LANES = 8;
  const double share = 1 / size;
  double squares[LANES] = {}, total = 0;
  const auto one = [&](int64_t i, int64_t lane) {
    gradient[i] = gradient[i] * share + shrink * params[i];
    squares[lane] += params[i] * params[i];
  };
  int64_t first = 0;
  for (; first + LANES <= n; first += LANES)
    for (int64_t lane = 0; lane < LANES; lane++) one(first + lane, lane);
  for (int64_t i = first; i < n; i++) one(i, i - first);
  for (const double each : squares) total += each;
  return total;
}

}  // namespace o2
