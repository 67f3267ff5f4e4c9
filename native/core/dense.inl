// Objectives on dense rows, and their gradients: passes over rows in lanes. See dense.hpp for the arrays.
// This file is compiled once per level of instructions: no header with code that other files compile too.
#include "core/dense_kernels.hpp"
#include "core/laying.inl"
#include "core/simd.hpp"

namespace o2 {
namespace {
namespace dense_pass {

using laying::fetch;
using laying::laid_at;

constexpr float STEEP = 60.0f;
#if O2_LEVEL == 3
constexpr int AT_ONCE = 24;  // accumulators
#elif O2_LEVEL == 2
constexpr int AT_ONCE = 6;
#else
constexpr int AT_ONCE = 2;
#endif

constexpr int rows_for(int kc) { int r = (O2_LEVEL == 3 ? 12 : 6) / kc; return r < 1 ? 1 : r > 8 ? 8 : r; }
constexpr int products_for(int kc) { int j = AT_ONCE / kc; return j >= 8 ? 8 : j >= 4 ? 4 : j >= 2 ? 2 : 1; }


// of sixteen rows, whose features begin at x
O2_IN V weight_of(const Rows& rows, int at, const float* x) { return rows.weight ? load(rows.weight + at) : load(x); }

template <bool LINEAR>
O2_IN V feature(const float* row, const Products& p, int q) {
  return LINEAR ? load(row + p.first[q]) : load(row + p.first[q]) * load(row + p.second[q]);
}

template <int KC, int R, bool LINEAR>
O2_IN void forward(const float* x, int step, const Products& p, const float* W, int stride, float* P, int of_action) {
  V s[KC][R];
  for (int k = 0; k < KC; k++) for (int r = 0; r < R; r++) s[k][r] = zero();
  for (int q = 0; q < p.count; q++) {
    V f[R];
    for (int r = 0; r < R; r++) f[r] = feature<LINEAR>(x + r * step, p, q);
    for (int k = 0; k < KC; k++) {
      V w = set1(W[q * stride + k]);
      for (int r = 0; r < R; r++) s[k][r] = fma(w, f[r], s[k][r]);
    }
  }
  for (int k = 0; k < KC; k++) for (int r = 0; r < R; r++) store(P + k * of_action + r * LANES, s[k][r]);
}

template <int KC, bool LINEAR>
void forward_rows(const float* x, int step, int vectors, const Products& p, const float* W, int stride, float* P, int of_action) {
  constexpr int R = rows_for(KC);
  int v = 0;
  for (; v + R <= vectors; v += R) forward<KC, R, LINEAR>(x + v * step, step, p, W, stride, P + v * LANES, of_action);
  for (; v < vectors; v++) forward<KC, 1, LINEAR>(x + v * step, step, p, W, stride, P + v * LANES, of_action);
}

template <int KC>
void forward_all(const float* x, int step, int vectors, const Products& p, const float* W, int stride, float* P, int of_action) {
  (p.linear ? forward_rows<KC, true> : forward_rows<KC, false>)(x, step, vectors, p, W, stride, P, of_action);
}

template <int KC, int J, bool LINEAR>
O2_IN void backward(const float* x, int step, int vectors, const Products& p, int q, const float* D, int of_action, float* own, bool begin) {
  V s[J][KC];
  for (int j = 0; j < J; j++) for (int k = 0; k < KC; k++) s[j][k] = begin ? zero() : load(own + (j * KC + k) * LANES);
  for (int v = 0; v < vectors; v++) {
    const float *row = x + v * step, *d = D + v * LANES;
    for (int j = 0; j < J; j++) {
      V f = feature<LINEAR>(row, p, q + j);
      for (int k = 0; k < KC; k++) s[j][k] = fma(f, load(d + k * of_action), s[j][k]);
    }
  }
  for (int j = 0; j < J; j++) for (int k = 0; k < KC; k++) store(own + (j * KC + k) * LANES, s[j][k]);
}

template <int KC, bool LINEAR>
void backward_rows(const float* x, int step, int vectors, const Products& p, const float* D, int of_action, float* sums, bool begin) {
  constexpr int J = products_for(KC);
  int q = 0;
  for (; q + J <= p.count; q += J)
    backward<KC, J, LINEAR>(x, step, vectors, p, q, D, of_action, sums + (int64_t)q * KC * LANES, begin);
  for (; q < p.count; q++)
    backward<KC, 1, LINEAR>(x, step, vectors, p, q, D, of_action, sums + (int64_t)q * KC * LANES, begin);
}

template <int KC>
void backward_all(const float* x, int step, int vectors, const Products& p, const float* D, int of_action, float* sums, bool begin) {
  (p.linear ? backward_rows<KC, true> : backward_rows<KC, false>)(x, step, vectors, p, D, of_action, sums, begin);
}

#define O2_BY_SIZE(function, size, ...)                                                                      \
  switch (size) {                                                                                            \
    case 1: function<1>(__VA_ARGS__); break; case 2: function<2>(__VA_ARGS__); break;                        \
    case 3: function<3>(__VA_ARGS__); break; case 4: function<4>(__VA_ARGS__); break;                        \
    case 5: function<5>(__VA_ARGS__); break; default: function<6>(__VA_ARGS__);                              \
  }

struct Lanes { V loss, pulled; };

O2_IN V one_loss(V u, V total, V exponent, V reward, V weight) {  // log(1 + u) - (1 - r) log u, u = total e^exponent
  V beyond = most(exponent - set1(STEEP), zero());
  V own = log_(u + set1(1.0f)) + beyond;
  own = fnma(set1(1.0f) - reward, log_(total) + exponent, own);
  return own * weight;
}

void competing_part(const Rows& rows, int from, int vectors, const float* x, int K, float* P, int of_action, float tau, Lanes& sums) {
  for (int v = 0; v < vectors; v++) {
    const int at = (from + v) * LANES;
    float* p = P + v * LANES;
    V a = load(rows.action + at), own = zero(), top = set1(-1e30f), total = zero();
    for (int k = 0; k < K; k++) {
      V s = load(p + k * of_action);
      Mask mine = same(a, set1((float)k));
      own = pick(mine, s, own);
      top = most(top, pick(mine, set1(-1e30f), s));
    }
    for (int k = 0; k < K; k++) {
      Mask mine = same(a, set1((float)k));
      V e = pick(mine, zero(), exp_(least(load(p + k * of_action) - top, zero())));
      store(p + k * of_action, e);
      total = total + e;
    }
    if (K == 1) top = zero(), total = set1(1.0f);
    V r = load(rows.reward + at), w = weight_of(rows, at, x + v * rows.factors * LANES);
    V exponent = top + set1(tau) - own;
    V u = total * exp_(least(most(exponent, set1(-STEEP)), set1(STEEP)));
    V c = (set1(1.0f) / (set1(1.0f) + u) - r) * w;
    V others = zero() - c / total;
    for (int k = 0; k < K; k++) {
      Mask mine = same(a, set1((float)k));
      store(p + k * of_action, pick(mine, c, others * load(p + k * of_action)));
    }
    sums.loss = sums.loss + one_loss(u, total, exponent, r, w);
    sums.pulled = sums.pulled + c;
  }
}

O2_IN V independent_one(V score, V r, V w, float tau, Lanes& sums) {
  V exponent = zero() - (score + set1(tau));
  V u = exp_(least(most(exponent, set1(-STEEP)), set1(STEEP)));
  V c = (set1(1.0f) / (set1(1.0f) + u) - r) * w;
  sums.loss = sums.loss + one_loss(u, set1(1.0f), exponent, r, w);
  sums.pulled = sums.pulled + c;
  return c;
}

// 16 sums of lanes at a time; each in the order of `sum`
#if O2_LEVEL == 3
O2_IN void sum16(const float* in, float* out) {
  __m512 a[16];
  for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_ps(in + 16 * i);
  for (int i = 0; i < 8; i++) {  // lanes l and l + 8; low half: accumulator i, high half: i + 8
    __m512 lo = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x44), hi = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xee);
    a[i] = _mm512_add_ps(lo, hi);
  }
  for (int i = 0; i < 4; i++) {  // quarters: i, i + 8 (by halves) and i + 4, i + 12
    __m512 lo = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88), hi = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
    a[i] = _mm512_add_ps(lo, hi);  // quarters: i, i+8, i+4, i+12
  }
  for (int i = 0; i < 2; i++) {
    __m512 lo = _mm512_shuffle_ps(a[i], a[i + 2], 0x44), hi = _mm512_shuffle_ps(a[i], a[i + 2], 0xee);
    a[i] = _mm512_add_ps(lo, hi);  // in each quarter: two of i, two of i + 2
  }
  __m512 lo = _mm512_shuffle_ps(a[0], a[1], 0x88), hi = _mm512_shuffle_ps(a[0], a[1], 0xdd);
  a[0] = _mm512_add_ps(lo, hi);  // in each quarter: 0, 2, 1, 3 (plus the quarter's)
  const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
  _mm512_storeu_ps(out, _mm512_permutexvar_ps(order, a[0]));
}
#else
O2_IN void sum16(const float* in, float* out) { for (int i = 0; i < 16; i++) out[i] = sum(load(in + 16 * i)); }
#endif

void reduce(const float* sums, int count, float* out) {
  int i = 0;
  for (; i + 16 <= count; i += 16) sum16(sums + i * LANES, out + i);
  for (; i < count; i++) out[i] = sum(load(sums + i * LANES));
}

OutcomeSums competing(const Rows& rows, const Products& p, int K, const float* W, float tau, float* G, float* room) {
  int step = rows.factors * LANES, block = block_of(rows.factors), of_action = block * LANES, chunks = chunks_of(K);
  float *P = room + laid_of(rows.factors), *sums = P + K * of_action;
  OutcomeSums total;
  for (int v = 0; v < rows.vectors; v += block) {
    int some = rows.vectors - v < block ? rows.vectors - v : block;
    const float* x = laid_at(rows, v, some, room);
    for (int c = 0; c < chunks; c++) {
      int k0 = chunk_start(K, c), kc = chunk_size(K, c);
      O2_BY_SIZE(forward_all, kc, x, step, some, p, W + (int64_t)k0 * p.count, kc, P + k0 * of_action, of_action)
    }
    fetch(rows, v + some, block);
    Lanes lanes = {zero(), zero()};
    competing_part(rows, v, some, x, K, P, of_action, tau, lanes);
    total.loss += sum(lanes.loss);
    total.pulled += sum(lanes.pulled);
    for (int c = 0; c < chunks; c++) {
      int k0 = chunk_start(K, c), kc = chunk_size(K, c);
      O2_BY_SIZE(backward_all, kc, x, step, some, p, P + k0 * of_action, of_action, sums + (int64_t)k0 * p.count * LANES, v == 0)
    }
  }
  reduce(sums, K * p.count, G);
  return total;
}

OutcomeSums independent_mixed(const Rows& rows, const Products& p, int K, const float* W, float tau, float* G, float* room) {
  int step = rows.factors * LANES, block = block_of(rows.factors), of_action = block * LANES, chunks = chunks_of(K);
  float *P = room + laid_of(rows.factors), *sums = P + K * of_action;
  OutcomeSums total;
  for (int v = 0; v < rows.vectors; v += block) {
    int some = rows.vectors - v < block ? rows.vectors - v : block;
    const float* x = laid_at(rows, v, some, room);
    for (int c = 0; c < chunks; c++) {
      int k0 = chunk_start(K, c), kc = chunk_size(K, c);
      O2_BY_SIZE(forward_all, kc, x, step, some, p, W + (int64_t)k0 * p.count, kc, P + k0 * of_action, of_action)
    }
    Lanes lanes = {zero(), zero()};
    for (int u = 0; u < some; u++) {
      int at = (v + u) * LANES;
      V a = load(rows.action + at), own = zero();
      for (int k = 0; k < K; k++) own = pick(same(a, set1((float)k)), load(P + k * of_action + u * LANES), own);
      V c = independent_one(own, load(rows.reward + at), weight_of(rows, at, x + u * step), tau, lanes);
      for (int k = 0; k < K; k++) store(P + k * of_action + u * LANES, pick(same(a, set1((float)k)), c, zero()));
    }
    total.loss += sum(lanes.loss);
    total.pulled += sum(lanes.pulled);
    for (int c = 0; c < chunks; c++) {
      int k0 = chunk_start(K, c), kc = chunk_size(K, c);
      O2_BY_SIZE(backward_all, kc, x, step, some, p, P + k0 * of_action, of_action, sums + (int64_t)k0 * p.count * LANES, v == 0)
    }
  }
  reduce(sums, K * p.count, G);
  return total;
}

OutcomeSums independent(const Rows& rows, const Products& p, int K, const float* W, float tau, float* G, float* room) {
  if (!rows.alike) return independent_mixed(rows, p, K, W, tau, G, room);
  int step = rows.factors * LANES, block = block_of(rows.factors), of_action = block * LANES;
  float *P = room + laid_of(rows.factors), *sums = P + of_action, *reduced = sums + p.count * LANES;
  for (int i = 0; i < K * p.count; i++) G[i] = 0;
  OutcomeSums total;
  int v = 0;
  while (v < rows.vectors) {
    int k = rows.alike[v], end = v;
    while (end < rows.vectors && rows.alike[end] == k) end++;
    int c = 0;
    while (k >= chunk_start(K, c) + chunk_size(K, c)) c++;
    int k0 = chunk_start(K, c), kc = chunk_size(K, c);
    const float* own = W + (int64_t)k0 * p.count + (k - k0);
    bool begin = true;
    for (; v < end; v += block, begin = false) {
      int some = end - v < block ? end - v : block;
      const float* x = laid_at(rows, v, some, room);
      forward_all<1>(x, step, some, p, own, kc, P, of_action);
      fetch(rows, v + some, block);
      Lanes lanes = {zero(), zero()};
      for (int u = 0; u < some; u++) {
        int at = (v + u) * LANES;
        store(P + u * LANES, independent_one(load(P + u * LANES), load(rows.reward + at), weight_of(rows, at, x + u * step), tau, lanes));
      }
      total.loss += sum(lanes.loss);
      total.pulled += sum(lanes.pulled);
      backward_all<1>(x, step, some, p, P, of_action, sums, begin);
    }
    v = end;
    reduce(sums, p.count, reduced);
    float* to = G + (int64_t)k0 * p.count + (k - k0);
    for (int q = 0; q < p.count; q++) to[q * kc] = reduced[q];
  }
  return total;
}

// Pessimistic objective of a softmax: D [2K] cotangents of risk (with the control's part) and of variance.
//     live = 1{w < α} w,  ∂risk/∂log π = live e,  ∂variance/∂log π = 2 live (w - 1),  w = π(a|x)/q
struct PessimisticLanes { V risk, variance, modelled; };

void pessimistic_part(const Rows& rows, int from, int vectors, const float* x, int K, float* P, int of_action, float alpha,
                      const Control& control, PessimisticLanes& sums) {
  float* D = P + K * of_action;
  const V one = set1(1.0f), limit = set1(alpha), base = set1(control.baseline);
  for (int v = 0; v < vectors; v++) {
    float* p = P + v * LANES;
    float* d = D + v * LANES;
    const int at = (from + v) * LANES;
    V top = load(p), total = zero(), own = zero(), a = load(rows.action + at);
    for (int k = 1; k < K; k++) top = most(top, load(p + k * of_action));
    for (int k = 0; k < K; k++) {
      V e = exp_(load(p + k * of_action) - top);
      store(p + k * of_action, e);
      total = total + e;
    }
    V scale = one / total;
    for (int k = 0; k < K; k++) {
      V pi = load(p + k * of_action) * scale;
      store(p + k * of_action, pi);
      own = pick(same(a, set1((float)k)), pi, own);
    }
    V w = own * load(rows.inverse + at), e = load(rows.reward + at), weigh = weight_of(rows, at, x + v * rows.factors * LANES);
    V clipped = least(w, limit), centred = (clipped - one) * weigh;
    sums.risk = fma(centred, e, sums.risk);
    sums.variance = fma(centred, clipped - one, sums.variance);
    V live = pick(less(w, limit), w, zero()) * weigh, away = live * (w - one);
    away = pick(less(w, limit), away, zero());
    V of_risk = live * e, of_variance = away + away, mean = zero();
    if (control.values) {
      float room[LANES];
      const int64_t row = control.start + at;
      for (int k = 0; k < K; k++) {
        const float* m = control.values + k * control.stride + row;
        if (at + LANES > rows.rows) {  // the last rows
          for (int l = 0; l < LANES; l++) room[l] = at + l < rows.rows ? m[l] : 0.0f;
          m = room;
        }
        V part = load(p + k * of_action) * (load(m) - base) * weigh;
        mean = mean + part;
        store(d + k * of_action, part);
      }
      sums.modelled = sums.modelled + mean;
    }
    for (int k = 0; k < K; k++) {
      Mask mine = same(a, set1((float)k));
      V pi = load(p + k * of_action), more = control.values ? load(d + k * of_action) : zero();
      store(d + k * of_action, pick(mine, of_risk, zero()) - pi * (of_risk + mean) + more);
      store(d + (K + k) * of_action, pick(mine, of_variance, zero()) - pi * of_variance);
    }
  }
}

PessimisticSums pessimistic(const Rows& rows, const Products& p, int K, const float* W, float alpha, const Control& control,
                            float* G, float* room) {
  int step = rows.factors * LANES, block = block_of(rows.factors), of_action = block * LANES, chunks = chunks_of(K);
  float *P = room + laid_of(rows.factors), *D = P + K * of_action, *sums = D + 2 * K * of_action;
  const int64_t part = (int64_t)K * p.count;
  PessimisticSums total;
  for (int v = 0; v < rows.vectors; v += block) {
    int some = rows.vectors - v < block ? rows.vectors - v : block;
    const float* x = laid_at(rows, v, some, room);
    for (int c = 0; c < chunks; c++) {
      int k0 = chunk_start(K, c), kc = chunk_size(K, c);
      O2_BY_SIZE(forward_all, kc, x, step, some, p, W + (int64_t)k0 * p.count, kc, P + k0 * of_action, of_action)
    }
    fetch(rows, v + some, block);
    PessimisticLanes lanes = {zero(), zero(), zero()};
    pessimistic_part(rows, v, some, x, K, P, of_action, alpha, control, lanes);
    total.risk += sum(lanes.risk), total.variance += sum(lanes.variance), total.modelled += sum(lanes.modelled);
    for (int half = 0; half < 2; half++)
      for (int c = 0; c < chunks; c++) {
        int k0 = chunk_start(K, c), kc = chunk_size(K, c);
        O2_BY_SIZE(backward_all, kc, x, step, some, p, D + (half * K + k0) * of_action, of_action,
                   sums + (half * part + (int64_t)k0 * p.count) * LANES, v == 0)
      }
  }
  reduce(sums, 2 * K * p.count, G);
  return total;
}

}  // namespace dense_pass
}  // namespace

const DenseKernels O2_TABLE(dense) = {dense_pass::competing, dense_pass::independent, dense_pass::pessimistic, laying::lay_out};

}  // namespace o2
