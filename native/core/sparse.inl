// See sparse.hpp. This file is compiled once per level of instructions.
#include "core/sparse.hpp"

#include "core/simd.hpp"
#include "core/weights.hpp"
#include "core/wide.hpp"

namespace o2 {
namespace {

// Of L < 16 actions: numbers in registers of eight, four, two and one.
template <int L>
struct Parts {
  Wide<double, 8>::Type eight{};
  Wide<double, 4>::Type four{};
  Wide<double, 2>::Type two{};
  double one = 0;

  // Calls part(number, offset) for each that is used.
  template <class Part>
  static inline __attribute__((always_inline)) void each(Parts& parts, const Part& part) {
    if constexpr (L & 8) part(parts.eight, 0);
    if constexpr (L & 4) part(parts.four, L & 8);
    if constexpr (L & 2) part(parts.two, L & 12);
    if constexpr (L & 1) part(parts.one, L & 14);
  }
};

// Calls part<L>(k) for actions k … k + L - 1, until all K are done: by eights, then all that are left.
template <class Part>
O2_IN void by_parts(int64_t K, const Part& part) {
  int64_t k = 0;
  for (; k + 16 <= K; k += 8) part.template operator()<8>(k);
  switch (K - k) {
    case 1: return part.template operator()<1>(k);
    case 2: return part.template operator()<2>(k);
    case 3: return part.template operator()<3>(k);
    case 4: return part.template operator()<4>(k);
    case 5: return part.template operator()<5>(k);
    case 6: return part.template operator()<6>(k);
    case 7: return part.template operator()<7>(k);
    case 8: return part.template operator()<8>(k);
    case 9: return part.template operator()<9>(k);
    case 10: return part.template operator()<10>(k);
    case 11: return part.template operator()<11>(k);
    case 12: return part.template operator()<12>(k);
    case 13: return part.template operator()<13>(k);
    case 14: return part.template operator()<14>(k);
    case 15: return part.template operator()<15>(k);
  }
}

// out[k · stride] = Σ_j values_j W[indices_j, k], in registers for up to fifteen actions at a time
template <class T>
O2_IN void row_scores(const SparseColumns& rows, int64_t r, ByFeature<const double> W, T* out, int64_t stride) {
  const int64_t first = rows.offsets[r], last = rows.offsets[r + 1];
  by_parts(W.K, [&]<int L>(int64_t k) {
    Parts<L> sums;
    for (int64_t j = first; j < last; j++) {
      const int64_t i = rows.indices[j];
      if (i < 0 || i >= W.d) continue;
      const double* from = W.data + i * W.K + k;
      const double value = static_cast<double>(rows.values[j]);
      Parts<L>::each(sums, [&](auto& sum, int offset) {
        auto w = sum;
        memcpy(&w, from + offset, sizeof w);
        sum += w * value;
      });
    }
    Parts<L>::each(sums, [&](auto& sum, int offset) {
      constexpr int width = sizeof(sum) / sizeof(double);
      double made[width];
      memcpy(made, &sum, sizeof sum);
      for (int l = 0; l < width; l++) out[(k + offset + l) * stride] = static_cast<T>(made[l]);
    });
  });
}

// G[indices_j, k] += values_j cotangent_k, the pullback of `row_scores`
O2_IN void pull_row(const SparseColumns& rows, int64_t r, const double* cotangent, ByFeature<double> G) {
  const int64_t first = rows.offsets[r], last = rows.offsets[r + 1];
  by_parts(G.K, [&]<int L>(int64_t k) {
    Parts<L> own;
    Parts<L>::each(own, [&](auto& c, int offset) { memcpy(&c, cotangent + k + offset, sizeof c); });
    for (int64_t j = first; j < last; j++) {
      const int64_t i = rows.indices[j];
      if (i < 0 || i >= G.d) continue;
      double* row = G.data + i * G.K + k;
      const double value = static_cast<double>(rows.values[j]);
      Parts<L>::each(own, [&](auto& c, int offset) {
        auto g = c;
        memcpy(&g, row + offset, sizeof g);
        g += c * value;
        memcpy(row + offset, &g, sizeof g);
      });
    }
  });
}

constexpr float STEEPEST = 60.0f;  // e^60 K² is finite in single precision; beyond it, the loss is |z|

struct OutcomeLanes {
  V loss = zero(), pulled = zero();
};

// Adds loss = log(1 + u) - (1 - r) log u with u = total e^exponent = (1 - m) / m. Returns c = (m - r) weight.
O2_IN V outcome_of(V total, V log_total, V exponent, V reward, V weight, OutcomeLanes& sums) {
  const V within = least(most(exponent, set1(-STEEPEST)), set1(STEEPEST));
  const V u = total * exp_(within), beyond = most(exponent - set1(STEEPEST), zero());
  const V c = (set1(1.0f) / (set1(1.0f) + u) - reward) * weight;
  const V loss = fnma(set1(1.0f) - reward, log_total + exponent, log_(u + set1(1.0f)) + beyond);
  sums.loss = sums.loss + loss * weight;
  sums.pulled = sums.pulled + c;
  return c;
}

// Scores P [K, SPARSE_BLOCK] of competing actions become cotangents. action, reward, weight [SPARSE_BLOCK]
O2_IN void competing_lanes(int64_t vectors, int64_t K, float* P, const float* action, const float* reward, const float* weight,
                           float tau, OutcomeLanes& sums) {
  for (int64_t v = 0; v < 16 * vectors; v += 16) {
    const V a = load(action + v);
    V own = zero(), top = set1(-1e30f), total = zero();
    for (int64_t k = 0; k < K; k++) {
      const V score = load(P + k * SPARSE_BLOCK + v);
      const Mask mine = same(a, set1(static_cast<float>(k)));
      own = pick(mine, score, own);
      top = most(top, pick(mine, set1(-1e30f), score));
    }
    for (int64_t k = 0; k < K; k++) {
      float* p = P + k * SPARSE_BLOCK + v;
      const V power = pick(same(a, set1(static_cast<float>(k))), zero(), exp_(least(load(p) - top, zero())));
      store(p, power);
      total = total + power;
    }
    if (K == 1) top = zero(), total = set1(1.0f);  // no other actions: their sum is that of one with score 0
    const V c = outcome_of(total, log_(total), top + set1(tau) - own, load(reward + v), load(weight + v), sums);
    const V others = zero() - c / total;
    for (int64_t k = 0; k < K; k++) {
      float* p = P + k * SPARSE_BLOCK + v;
      store(p, pick(same(a, set1(static_cast<float>(k))), c, others * load(p)));
    }
  }
}

// Scores of played actions, which are independent, become cotangents. [SPARSE_BLOCK]
O2_IN void independent_lanes(int64_t vectors, float* scores, const float* reward, const float* weight, float tau,
                             OutcomeLanes& sums) {
  for (int64_t v = 0; v < 16 * vectors; v += 16) {
    const V exponent = zero() - (load(scores + v) + set1(tau));
    store(scores + v, outcome_of(set1(1.0f), zero(), exponent, load(reward + v), load(weight + v), sums));
  }
}

// Scores P [K, SPARSE_BLOCK] become probabilities. Writes those of the actions, times `inverse`, to `weights`.
O2_IN void softmax_lanes(int64_t vectors, int64_t K, float* P, const float* action, const float* inverse, float* weights) {
  for (int64_t v = 0; v < 16 * vectors; v += 16) {
    const V a = load(action + v);
    V top = load(P + v), total = zero(), own = zero();
    for (int64_t k = 1; k < K; k++) top = most(top, load(P + k * SPARSE_BLOCK + v));
    for (int64_t k = 0; k < K; k++) {
      float* p = P + k * SPARSE_BLOCK + v;
      const V power = exp_(load(p) - top);
      store(p, power);
      total = total + power;
    }
    const V scale = set1(1.0f) / total;
    for (int64_t k = 0; k < K; k++) {
      float* p = P + k * SPARSE_BLOCK + v;
      const V probability = load(p) * scale;
      store(p, probability);
      own = pick(same(a, set1(static_cast<float>(k))), probability, own);
    }
    store(weights + v, own * load(inverse + v));
  }
}

O2_IN int64_t vectors_of(int64_t n) { return (n + 15) / 16; }

// to [SPARSE_BLOCK]: n numbers, then `rest` up to a whole vector
template <class T>
O2_IN void take(const T* from, int64_t n, float rest, float* to) {
  for (int64_t r = 0; r < n; r++) to[r] = static_cast<float>(from[r]);
  for (int64_t r = n; r < 16 * vectors_of(n); r++) to[r] = rest;
}

O2_IN void scores_of_block(const SparseColumns& rows, int64_t from, int64_t n, ByFeature<const double> W, float* P) {
  for (int64_t r = 0; r < n; r++) row_scores(rows, from + r, W, P + r, SPARSE_BLOCK);
  for (int64_t k = 0; k < W.K; k++)
    for (int64_t r = n; r < 16 * vectors_of(n); r++) P[k * SPARSE_BLOCK + r] = 0;
}

// Scores of independent actions: of each row's own. known: every entry is a feature of W, which has one column
template <bool KNOWN>
O2_IN void own_scores(const SparseColumns& rows, int64_t from, int64_t n, const int64_t* actions, ByFeature<const double> W, float* P) {
  const auto product = [&](int64_t j, int64_t r) {
    const int64_t i = rows.indices[j];
    if constexpr (KNOWN) return static_cast<double>(rows.values[j]) * W.data[i];
    return i >= 0 && i < W.d ? static_cast<double>(rows.values[j]) * W.data[i * W.K + actions[from + r]] : 0.0;
  };
  const int64_t* offsets = rows.offsets + from;
  int64_t r = 0;
  for (; r + 4 <= n; r += 4) {  // rows side by side do not wait for each other
    int64_t at[4], least = offsets[r + 1] - offsets[r];
    for (int l = 0; l < 4; l++) {
      const int64_t size = offsets[r + l + 1] - offsets[r + l];
      at[l] = offsets[r + l], least = size < least ? size : least;
    }
    double score[4] = {};
    for (int64_t j = 0; j < least; j++)
      for (int l = 0; l < 4; l++) score[l] += product(at[l] + j, r + l);
    for (int l = 0; l < 4; l++) {
      for (int64_t j = at[l] + least; j < offsets[r + l + 1]; j++) score[l] += product(j, r + l);
      P[r + l] = static_cast<float>(score[l]);
    }
  }
  for (; r < n; r++) {
    double score = 0;
    for (int64_t j = offsets[r]; j < offsets[r + 1]; j++) score += product(j, r);
    P[r] = static_cast<float>(score);
  }
}

// The pullback of `own_scores`. cotangents [n]
template <bool KNOWN>
O2_IN void pull_own(const SparseColumns& rows, int64_t from, int64_t n, const int64_t* actions, const float* cotangents, ByFeature<double> G) {
  const int64_t* offsets = rows.offsets + from;
  for (int64_t r = 0; r < n; r++) {
    const auto c = static_cast<double>(cotangents[r]);
    for (int64_t j = offsets[r]; j < offsets[r + 1]; j++) {
      const int64_t i = rows.indices[j];
      if constexpr (KNOWN) G.data[i] += static_cast<double>(rows.values[j]) * c;
      else if (i >= 0 && i < G.d) G.data[i * G.K + actions[from + r]] += static_cast<double>(rows.values[j]) * c;
    }
  }
}

}  // namespace

namespace kernels {

template <int LEVEL>
void sparse_scores(const SparseColumns& rows, ByFeature<const double> W, double* out) {
  for (int64_t r = 0; r < rows.n; r++) row_scores(rows, r, W, out + r * W.K, 1);
}

template <int LEVEL>
void sparse_sums(const SparseColumns& rows, const double* cotangent, ByFeature<double> G) {
  for (int64_t r = 0; r < rows.n; r++) pull_row(rows, r, cotangent + r * G.K, G);
}

template <int LEVEL>
OutcomeTotals sparse_outcome(const SparseColumns& rows, const SparseOutcomeLog& log, ByFeature<const double> W, double tau,
                             ByFeature<double> G, float* room, double* of_row) {
  float *action = room, *reward = room + SPARSE_BLOCK, *weight = room + 2 * SPARSE_BLOCK, *P = room + 3 * SPARSE_BLOCK;
  const auto level = static_cast<float>(tau);
  const int64_t K = W.K;
  OutcomeTotals totals;
  for (int64_t from = 0; from < rows.n; from += SPARSE_BLOCK) {
    const int64_t left = rows.n - from, n = left < SPARSE_BLOCK ? left : SPARSE_BLOCK, vectors = vectors_of(n);
    if (log.competing) take(log.actions + from, n, -1, action);
    take(log.rewards + from, n, 0, reward);
    for (int64_t r = 0; r < 16 * vectors; r++) weight[r] = r >= n ? 0.0f : log.weights ? log.weights[from + r] : 1.0f;
    OutcomeLanes sums;
    if (log.competing) {
      scores_of_block(rows, from, n, W, P);
      competing_lanes(vectors, K, P, action, reward, weight, level, sums);
      for (int64_t r = 0; r < n; r++) {
        for (int64_t k = 0; k < K; k++) of_row[k] = P[k * SPARSE_BLOCK + r];
        pull_row(rows, from + r, of_row, G);
      }
    } else {  // only the played action enters the likelihood
      const bool known = log.known && K == 1;
      known ? own_scores<true>(rows, from, n, log.actions, W, P) : own_scores<false>(rows, from, n, log.actions, W, P);
      for (int64_t r = n; r < 16 * vectors; r++) P[r] = 0;
      independent_lanes(vectors, P, reward, weight, level, sums);
      known ? pull_own<true>(rows, from, n, log.actions, P, G) : pull_own<false>(rows, from, n, log.actions, P, G);
    }
    totals.loss += static_cast<double>(sum(sums.loss));
    totals.pulled += static_cast<double>(sum(sums.pulled));
  }
  return totals;
}

template <int LEVEL>
PessimisticTotals sparse_risk(const SparseColumns& rows, const SparsePessimisticLog& log, ByFeature<const double> W,
                              const SparsePass& pass) {
  float action[SPARSE_BLOCK], inverse[SPARSE_BLOCK], weights[SPARSE_BLOCK];
  const int64_t K = W.K;
  PessimisticTotals totals;
  for (int64_t from = 0; from < rows.n; from += SPARSE_BLOCK) {
    const int64_t left = rows.n - from, n = left < SPARSE_BLOCK ? left : SPARSE_BLOCK, vectors = vectors_of(n);
    float *P = pass.policy + from * K, *of_risk = pass.parts + from * 3, *of_variance = of_risk + SPARSE_BLOCK;
    float* mean = of_variance + SPARSE_BLOCK;
    take(log.actions + from, n, -1, action);
    take(log.inverse + from, n, 0, inverse);
    scores_of_block(rows, from, n, W, P);
    softmax_lanes(vectors, K, P, action, inverse, weights);
    const ClippedSums sums = clipped_sums(weights, log.residuals + from, n, log.alpha);
    totals.risk += sums.risk;
    totals.variance += sums.variance;
    split_cotangent(weights, log.residuals + from, n, log.alpha, 1.0, of_risk, of_variance);
    if (!log.control) continue;
    for (int64_t r = 0; r < n; r++) mean[r] = 0;
    for (int64_t k = 0; k < K; k++) {
      const float *control = log.control + k * log.stride + from, *p = P + k * SPARSE_BLOCK;
      for (int64_t r = 0; r < n; r++) mean[r] += p[r] * (control[r] - log.baseline);
    }
    for (int64_t r = 0; r < n; r++) totals.modelled += static_cast<double>(mean[r]);
  }
  return totals;
}

template <int LEVEL>
void sparse_risk_gradient(const SparseColumns& rows, const SparsePessimisticLog& log, const SparsePass& pass, double slope,
                          ByFeature<double> G, double* of_row) {
  const int64_t K = G.K;
  for (int64_t r = 0; r < rows.n; r++) {
    const int64_t at = r % SPARSE_BLOCK, from = r - at;
    const float *p = pass.policy + from * K + at, *parts = pass.parts + from * 3 + at;
    // ∂ c log π(a_s|x_s) / ∂ scores = c (1{a = a_s} - π); of the control's part, π (m - b - Σ_a π (m - b))
    const double c = static_cast<double>(parts[0]) + slope * static_cast<double>(parts[SPARSE_BLOCK]);
    const double mean = log.control ? static_cast<double>(parts[2 * SPARSE_BLOCK]) : 0.0;
    if (c == 0 && !log.control) continue;
    for (int64_t k = 0; k < K; k++) {
      const double policy = static_cast<double>(p[k * SPARSE_BLOCK]);
      const double modelled = log.control ? static_cast<double>(log.control[k * log.stride + r] - log.baseline) : 0.0;
      of_row[k] = policy * (modelled - mean - c);
    }
    of_row[log.actions[r]] += c;
    pull_row(rows, r, of_row, G);
  }
}

template void sparse_scores<O2_LEVEL>(const SparseColumns&, ByFeature<const double>, double*);
template void sparse_sums<O2_LEVEL>(const SparseColumns&, const double*, ByFeature<double>);
template OutcomeTotals sparse_outcome<O2_LEVEL>(const SparseColumns&, const SparseOutcomeLog&, ByFeature<const double>, double,
                                                ByFeature<double>, float*, double*);
template PessimisticTotals sparse_risk<O2_LEVEL>(const SparseColumns&, const SparsePessimisticLog&, ByFeature<const double>,
                                                 const SparsePass&);
template void sparse_risk_gradient<O2_LEVEL>(const SparseColumns&, const SparsePessimisticLog&, const SparsePass&, double,
                                             ByFeature<double>, double*);

}  // namespace kernels
}  // namespace o2
