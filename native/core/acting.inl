#include "core/acting_kernels.hpp"
#include "core/eight.hpp"
#include "core/math.hpp"

namespace o2 {
namespace {

// x becomes exp(x); eight at a time, the last ones too: a loop over few of them would not vectorise.
void exponentials(double* x, int64_t n) {
  int64_t from = 0;
  for (; from + EIGHT <= n; from += EIGHT)
    for (int64_t l = 0; l < EIGHT; l++) x[from + l] = exp_of(x[from + l]);
  if (from == n) return;
  double own[EIGHT] = {};
  for (int64_t l = 0; l < n - from; l++) own[l] = x[from + l];
  for (int64_t l = 0; l < EIGHT; l++) own[l] = exp_of(own[l]);
  for (int64_t l = 0; l < n - from; l++) x[from + l] = own[l];
}

double largest(const double* x, int64_t n) {
  double top = -std::numeric_limits<double>::infinity();
  int64_t k = 0;
  if (n >= EIGHT) {
    Eight tops = eight_at(x);
    for (k = EIGHT; k + EIGHT <= n; k += EIGHT) tops = most(tops, eight_at(x + k));
    double each[EIGHT];
    to_lanes(tops, each);
    for (const double one : each) top = one > top ? one : top;
  }
  for (; k < n; k++) top = x[k] > top ? x[k] : top;
  return top;
}

double total_of(const double* x, int64_t n) {
  double total = 0;
  int64_t k = 0;
  if (n >= EIGHT) {
    Eight totals = eight_at(x);
    for (k = EIGHT; k + EIGHT <= n; k += EIGHT) totals = totals + eight_at(x + k);
    total = sum(totals);
  }
  for (; k < n; k++) total += x[k];
  return total;
}

// Of fewer than eight: in one vector, with the sums of `softmax_of`.
void softmax_of_few(double* scores, int64_t K, double sharpness) {
  double top = -std::numeric_limits<double>::infinity(), own[EIGHT], total = 0;
  for (int64_t k = 0; k < K; k++) top = scores[k] > top ? scores[k] : top;
  for (int64_t l = 0; l < EIGHT; l++) own[l] = l < K ? scores[l] : top;
  for (int64_t l = 0; l < EIGHT; l++) own[l] = exp_of(sharpness * (own[l] - top));
  for (int64_t k = 0; k < K; k++) total += own[k];
  for (int64_t l = 0; l < EIGHT; l++) own[l] /= total;
  for (int64_t k = 0; k < K; k++) scores[k] = own[k];
}

void softmax_of(double* scores, int64_t K, double sharpness) {
  if (K < EIGHT) return softmax_of_few(scores, K, sharpness);
  const double top = largest(scores, K);
  for (int64_t k = 0; k < K; k++) scores[k] = sharpness * (scores[k] - top);
  exponentials(scores, K);
  const double total = total_of(scores, K);
  for (int64_t k = 0; k < K; k++) scores[k] /= total;
}

void logarithms(double* x, int64_t n) {
  double lanes[EIGHT];
  for (int64_t from = 0; from < n; from += EIGHT) {
    const int64_t some = n - from < EIGHT ? n - from : EIGHT;
    for (int64_t l = 0; l < EIGHT; l++) lanes[l] = l < some ? x[from + l] : 1;
    for (int64_t l = 0; l < EIGHT; l++) lanes[l] = log_of(lanes[l]);
    for (int64_t l = 0; l < some; l++) x[from + l] = lanes[l];
  }
}

// Of fewer than eight actions: eight members at a time, with the sums of `mix`.
void mix_few(const double* scores, int64_t M, int64_t K, int64_t stride, const double* weights, double* __restrict out) {
  double e[EIGHT][EIGHT], top[EIGHT], total[EIGHT];
  for (int64_t from = 0; from < M; from += EIGHT) {
    const int64_t some = M - from < EIGHT ? M - from : EIGHT;
    for (int64_t k = 0; k < K; k++)
      for (int64_t l = 0; l < EIGHT; l++) e[k][l] = l < some ? scores[(from + l) * stride + k] : 0;
    for (int64_t l = 0; l < EIGHT; l++) top[l] = -std::numeric_limits<double>::infinity(), total[l] = 0;
    for (int64_t k = 0; k < K; k++)
      for (int64_t l = 0; l < EIGHT; l++) top[l] = e[k][l] > top[l] ? e[k][l] : top[l];
    for (int64_t k = 0; k < K; k++)
      for (int64_t l = 0; l < EIGHT; l++) e[k][l] = exp_of(e[k][l] - top[l]), total[l] += e[k][l];
    for (int64_t k = 0; k < K; k++)
      for (int64_t l = 0; l < EIGHT; l++) e[k][l] /= total[l];
    for (int64_t l = 0; l < some; l++)
      for (int64_t k = 0; k < K; k++) out[k] += weights[from + l] * e[k][l];
  }
}

void mix(double* scores, int64_t M, int64_t K, int64_t stride, const double* weights, double* __restrict out) {
  for (int64_t k = 0; k < K; k++) out[k] = 0;
  if (K < EIGHT) {
    mix_few(scores, M, K, stride, weights, out);
    return logarithms(out, K);
  }
  for (int64_t m = 0; m < M; m++) {
    double* own = scores + m * stride;
    const double top = largest(own, K);
    for (int64_t k = 0; k < K; k++) own[k] -= top;
    if (stride != K) exponentials(own, K);
  }
  if (stride == K) exponentials(scores, M * K);  // all members together
  for (int64_t m = 0; m < M; m++) {
    double* own = scores + m * stride;
    const double total = total_of(own, K), weight = weights[m];
    for (int64_t k = 0; k < K; k++) own[k] /= total;
    for (int64_t k = 0; k < K; k++) out[k] += weight * own[k];
  }
  logarithms(out, K);
}

}  // namespace

const ActingKernels O2_TABLE(acting) = {softmax_of, mix};

}  // namespace o2
