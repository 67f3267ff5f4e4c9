#include "core/acting_kernels.hpp"
#include "core/eight.hpp"
#include "core/math.hpp"

namespace o2 {
namespace {

void softmax_of(double* scores, int64_t K, double sharpness) {
  double top = -std::numeric_limits<double>::infinity(), total = 0;
  int64_t k = 0;
  if (K >= EIGHT) {
    Eight tops = eight_at(scores);
    for (k = EIGHT; k + EIGHT <= K; k += EIGHT) tops = most(tops, eight_at(scores + k));
    double each[EIGHT];
    to_lanes(tops, each);
    for (const double one : each) top = one > top ? one : top;
  }
  for (; k < K; k++) top = scores[k] > top ? scores[k] : top;
  for (k = 0; k < K; k++) scores[k] = exp_of(sharpness * (scores[k] - top));
  k = 0;
  if (K >= EIGHT) {
    Eight totals = eight_at(scores);
    for (k = EIGHT; k + EIGHT <= K; k += EIGHT) totals = totals + eight_at(scores + k);
    total = sum(totals);
  }
  for (; k < K; k++) total += scores[k];
  for (k = 0; k < K; k++) scores[k] /= total;
}

void mix(double* scores, int64_t M, int64_t K, int64_t stride, const double* weights, double* __restrict out) {
  for (int64_t k = 0; k < K; k++) out[k] = 0;
  for (int64_t m = 0; m < M; m++) {
    double* own = scores + m * stride;
    softmax_of(own, K, 1.0);
    const double weight = weights[m];
    for (int64_t k = 0; k < K; k++) out[k] += weight * own[k];
  }
  for (int64_t k = 0; k < K; k++) out[k] = log_of(out[k]);
}

}  // namespace

const ActingKernels O2_TABLE(acting) = {softmax_of, mix};

}  // namespace o2
