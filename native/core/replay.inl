#include "core/replay.hpp"
#include "core/weights.hpp"

namespace o2 {
namespace {

#if O2_LEVEL == 3
constexpr int TALL = 4, WIDE = 4;  // sums in registers
#elif O2_LEVEL == 2
constexpr int TALL = 4, WIDE = 1;
#else
constexpr int TALL = 2, WIDE = 1;
#endif

template <int ROWS, int VECTORS>
O2_IN void product_block(const float* A, int64_t stride, const float* B, int64_t m, int64_t columns, float* C) {
  V sums[ROWS][VECTORS];
  for (int k = 0; k < ROWS; k++) for (int v = 0; v < VECTORS; v++) sums[k][v] = zero();
  for (int64_t j = 0; j < m; j++) {
    V b[VECTORS];
    for (int v = 0; v < VECTORS; v++) b[v] = load(B + j * columns + 16 * v);
    for (int k = 0; k < ROWS; k++) {
      const V a = set1(A[k * stride + j]);
      for (int v = 0; v < VECTORS; v++) sums[k][v] = fma(a, b[v], sums[k][v]);
    }
  }
  for (int k = 0; k < ROWS; k++) for (int v = 0; v < VECTORS; v++) store(C + k * columns + 16 * v, sums[k][v]);
}

template <int ROWS>
O2_IN void product_rows(const float* A, int64_t stride, const float* B, int64_t m, int64_t columns, float* C) {
  int64_t i = 0;
  for (; i + 16 * WIDE <= columns; i += 16 * WIDE) product_block<ROWS, WIDE>(A, stride, B + i, m, columns, C + i);
  for (; i < columns; i += 16) product_block<ROWS, 1>(A, stride, B + i, m, columns, C + i);
}

// C = A B; A [K, m] with rows `stride` apart, B [m, columns], columns a multiple of 16. Sums run over j = 0, 1, ...
void product(const float* A, int64_t K, int64_t stride, const float* B, int64_t m, int64_t columns, float* C) {
  int64_t k = 0;
  for (; k + TALL <= K; k += TALL) product_rows<TALL>(A + k * stride, stride, B, m, columns, C + k * columns);
  for (; k < K; k++) product_rows<1>(A + k * stride, stride, B, m, columns, C + k * columns);
}

// Replaces scores P [K, rows] by probabilities; weights: π(a_s|x_s) / q_s
void softmax_weights(const Window& w, float* P, float* weights) {
  for (int64_t r = 0; r < w.rows; r += 16) {
    V top = load(P + r), scale = zero(), taken = zero();
    const V actions = load(w.actions + r);
    for (int64_t k = 1; k < w.K; k++) top = most(top, load(P + k * w.rows + r));
    for (int64_t k = 0; k < w.K; k++) {
      const V p = exp_(load(P + k * w.rows + r) - top);
      store(P + k * w.rows + r, p);
      scale = scale + p;
    }
    scale = set1(1.0f) / scale;
    for (int64_t k = 0; k < w.K; k++) {
      const V p = load(P + k * w.rows + r) * scale;
      store(P + k * w.rows + r, p);
      taken = pick(same(actions, set1(static_cast<float>(k))), p, taken);
    }
    store(weights + r, taken * load(w.inverse + r));
  }
}

void replay(const Window& w, const Pessimism& objective, const AdamState& adam_state) {
  const int64_t size = w.K * w.d;
  float* room = new float[static_cast<size_t>(size + w.K * w.rows + w.K * w.columns + w.rows)]();
  float *W = room, *P = W + size, *G = P + w.K * w.rows, *weights = G + w.K * w.columns;
  double* gradient = new double[static_cast<size_t>(size)];
  const float alpha = static_cast<float>(objective.alpha);
  for (int64_t step = 0; step < adam_state.steps; step++) {
    for (int64_t i = 0; i < size; i++) W[i] = static_cast<float>(adam_state.params[i]);
    product(W, w.K, w.d, w.X_by_column, w.d, w.rows, P);
    softmax_weights(w, P, weights);
    const double variance = clipped_sums(weights, w.residuals, w.n, alpha).variance / static_cast<double>(w.n);
    weight_cotangent(weights, w.residuals, w.n, alpha, phi(variance, objective.penalty).slope, static_cast<double>(w.n));
    for (int64_t r = w.n; r < w.rows; r++) weights[r] = 0;
    for (int64_t r = 0; r < w.rows; r += 16) {  // ∂/∂scores of c_s log π(a_s|x_s): c_s (1{a = a_s} - π)
      const V c = load(weights + r), actions = load(w.actions + r);
      for (int64_t k = 0; k < w.K; k++) {
        float* own = P + k * w.rows + r;
        store(own, pick(same(actions, set1(static_cast<float>(k))), c, zero()) - c * load(own));
      }
    }
    product(P, w.K, w.rows, w.X, w.rows, w.columns, G);
    for (int64_t k = 0; k < w.K; k++)
      for (int64_t i = 0; i < w.d; i++)
        gradient[k * w.d + i] = static_cast<double>(G[k * w.columns + i]) + objective.shrink * adam_state.params[k * w.d + i];
    const int64_t count = ++*adam_state.count;
    const double rate = adam_state.step_size / adam_grown(ADAM_FIRST, count), correction = 1 / adam_grown(ADAM_SECOND, count);
    adam<double>(adam_state.params, gradient, adam_state.first, adam_state.second, size, rate, correction);
  }
  delete[] gradient;
  delete[] room;
}

}  // namespace
}  // namespace o2
