#include "core/actionwise.hpp"

#include "core/math.hpp"
#include "core/weights.hpp"

namespace o2::kernels {

template <int LEVEL>
SetSums actionwise_partial(const SetsLog& log, double* scores, double* of_risk, double* of_variance, double* room) {
  const int64_t n = log.n, begin = log.offsets[0], total = log.offsets[n] - begin;
  double *weights = room, *risk = room + n, *variance = room + 2 * n;
  for (int64_t s = 0; s < n; s++) {
    const int64_t first = log.offsets[s] - begin, last = log.offsets[s + 1] - begin;
    double top = scores[first];
    for (int64_t r = first + 1; r < last; r++) top = scores[r] > top ? scores[r] : top;
    for (int64_t r = first; r < last; r++) scores[r] -= top;
  }
  for (int64_t r = 0; r < total; r++) scores[r] = exp_of(scores[r]);
  for (int64_t s = 0; s < n; s++) {
    const int64_t first = log.offsets[s] - begin, last = log.offsets[s + 1] - begin;
    double sum = 0;
    for (int64_t r = first; r < last; r++) sum += scores[r];
    const double share = 1 / sum;
    for (int64_t r = first; r < last; r++) scores[r] *= share;
    weights[s] = scores[first + log.actions[s]] * log.inverse[s];
  }
  const ClippedSums sums = clipped_sums(weights, log.residuals, n, log.alpha);
  split_cotangent(weights, log.residuals, n, log.alpha, 1.0, risk, variance);
  for (int64_t s = 0; s < n; s++) {
    const int64_t first = log.offsets[s] - begin, last = log.offsets[s + 1] - begin, played = first + log.actions[s];
    for (int64_t r = first; r < last; r++) {
      of_risk[r] = -risk[s] * scores[r];
      of_variance[r] = -variance[s] * scores[r];
    }
    of_risk[played] += risk[s];
    of_variance[played] += variance[s];
  }
  return {sums.risk, sums.variance};
}

template SetSums actionwise_partial<O2_LEVEL>(const SetsLog&, double*, double*, double*, double*);

}  // namespace o2::kernels
