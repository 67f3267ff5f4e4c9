// Linear softmax on sparse rows: scores rows · W, objectives and their gradients. W [d, K]: features can be appended.
//
// Features beyond W are ignored. Sums over a row keep their order, in double precision; the rest is in single precision.
#pragma once
#include <cstdint>

namespace o2 {

// Row r has values[offsets[r]], … at the features indices[offsets[r]], …, up to offsets[r + 1].
struct SparseColumns {
  const int32_t* indices;
  const float* values;
  const int64_t* offsets;  // [n + 1]
  int64_t n;
};

// Weights or their gradient, row-major.
template <class T>
struct ByFeature {
  T* data;
  int64_t d, K;
};

// out [n, K] = rows · W
void sparse_scores(const SparseColumns& rows, ByFeature<const double> W, double* out);

// G += rowsᵀ · cotangent [n, K], the pullback
void sparse_sums(const SparseColumns& rows, const double* cotangent, ByFeature<double> G);

// -- the outcome objective, `o2pl.objectives.outcome`

struct SparseOutcomeLog {
  const int64_t* actions;
  const float *rewards, *weights;  // weights: null for one each
  bool competing;
  bool known = false;  // W has one column, and every entry is one of its features: actions are not asked for
};

struct OutcomeTotals {
  double loss = 0, pulled = 0;  // Σ losses, Σ (m - r)
};

// Adds the gradient by the weights to G.
OutcomeTotals sparse_outcome(const SparseColumns& rows, const SparseOutcomeLog& log, ByFeature<const double> W, double tau,
                             ByFeature<double> G);

// -- the pessimistic objective, `o2pl.objectives.pessimistic`. Φ' is known only after a pass over all rows.

constexpr int64_t SPARSE_BLOCK = 256;  // rows that are worked on together

struct SparsePessimisticLog {
  const int64_t* actions;
  const float *residuals, *inverse;  // y - b, 1/q
  float alpha;
  const float* control;  // m(x, a) [K, stride], or null
  int64_t stride;
  float baseline;
};

// What the first pass leaves for the second, in blocks of rows.
struct SparsePass {
  float* policy;  // π [blocks, K, SPARSE_BLOCK]
  float* parts;   // of risk, of variance, mean of the control [blocks, 3, SPARSE_BLOCK]
};

struct PessimisticTotals {
  double risk = 0, variance = 0, modelled = 0;
};

PessimisticTotals sparse_risk(const SparseColumns& rows, const SparsePessimisticLog& log, ByFeature<const double> W,
                              const SparsePass& pass);

// Adds the gradient of Σ risk + slope · Σ variance to G. Rows without one, such as clipped ones, are skipped.
void sparse_risk_gradient(const SparseColumns& rows, const SparsePessimisticLog& log, const SparsePass& pass, double slope,
                          ByFeature<double> G);

namespace kernels {  // once per level of instructions

template <int LEVEL>
void sparse_scores(const SparseColumns& rows, ByFeature<const double> W, double* out);
template <int LEVEL>
void sparse_sums(const SparseColumns& rows, const double* cotangent, ByFeature<double> G);
template <int LEVEL>  // room [(K + 3) SPARSE_BLOCK]
OutcomeTotals sparse_outcome(const SparseColumns& rows, const SparseOutcomeLog& log, ByFeature<const double> W, double tau,
                             ByFeature<double> G, float* room, double* of_row);
template <int LEVEL>
PessimisticTotals sparse_risk(const SparseColumns& rows, const SparsePessimisticLog& log, ByFeature<const double> W,
                              const SparsePass& pass);
template <int LEVEL>
void sparse_risk_gradient(const SparseColumns& rows, const SparsePessimisticLog& log, const SparsePass& pass, double slope,
                          ByFeature<double> G, double* of_row);

}  // namespace kernels
}  // namespace o2
