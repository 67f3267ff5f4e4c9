#include "core/math.hpp"
#include "core/outcome.hpp"

namespace o2 {
namespace kernels {

// Members in lanes: at each action, exponentials of eight members at a time.
template <int LEVEL>
void played_log_odds(const double* scores, int64_t M, int64_t K, int64_t action, const PlayedBy* members, double* out) {
  for (int64_t from = 0; from < M; from += 8) {
    const int some = M - from < 8 ? static_cast<int>(M - from) : 8;
    double top[8], total[8], e[8];
    for (int l = 0; l < 8; l++) top[l] = -std::numeric_limits<double>::infinity(), total[l] = 0, e[l] = 0;
    for (int64_t k = 0; k < K; k++)
      if (k != action)
        for (int l = 0; l < some; l++) {
          const double score = scores[(from + l) * K + k];
          top[l] = top[l] < score ? score : top[l];
        }
    for (int64_t k = 0; k < K; k++)
      if (k != action) {
        for (int l = 0; l < some; l++) e[l] = scores[(from + l) * K + k] - top[l];
        for (int l = 0; l < 8; l++) total[l] += exp_of(e[l]);
      }
    for (int l = 0; l < 8; l++) e[l] = log_of(l < some ? total[l] : 1.0);
    for (int l = 0; l < some; l++) {
      const PlayedBy& own = members[from + l];
      const double score = scores[(from + l) * K + action];
      out[from + l] = !own.competing ? score + own.tau : K == 1 ? score - own.tau : score - own.tau - (top[l] + e[l]);
    }
  }
}

// Eight sums of each kind, of every eighth row, and these in order: loops over eight rows vectorise.
template <int LEVEL>
void prediction_sums(const double* z, const double* rewards, int64_t n, double level, double slope, PredictionSums& sums) {
  double part[6][8] = {};
  for (int64_t from = 0; from < n; from += 8) {
    const int some = n - from < 8 ? static_cast<int>(n - from) : 8;
    double x[8] = {}, r[8] = {}, in[8] = {}, m[8], log_m[8], log_rest[8];
    for (int l = 0; l < some; l++) x[l] = z[from + l], r[l] = rewards[from + l], in[l] = 1;
    for (int l = 0; l < 8; l++) x[l] = x[l] < -FAR ? -FAR : x[l] > FAR ? FAR : x[l];
    for (int l = 0; l < 8; l++) m[l] = 1 / (1 + exp_of(-(level + slope * x[l])));
    for (int l = 0; l < 8; l++) {
      const double off = (r[l] - m[l]) * in[l], h = m[l] * (1 - m[l]) * in[l];
      part[1][l] += off, part[2][l] += off * x[l];
      part[3][l] += h, part[4][l] += h * x[l], part[5][l] += h * x[l] * x[l];
    }
    for (int l = 0; l < 8; l++) m[l] = m[l] < SURE ? SURE : m[l] > 1 - SURE ? 1 - SURE : m[l];
    for (int l = 0; l < 8; l++) log_m[l] = log_of(m[l]);
    for (int l = 0; l < 8; l++) log_rest[l] = log_of(1 - m[l]);
    for (int l = 0; l < 8; l++) part[0][l] += (r[l] * log_m[l] + (1 - r[l]) * log_rest[l]) * in[l];
  }
  double total[6];
  for (int i = 0; i < 6; i++) {
    const double* p = part[i];
    total[i] = ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
  }
  sums = {total[0], total[1], total[2], total[3], total[4], total[5]};
}

template void played_log_odds<O2_LEVEL>(const double*, int64_t, int64_t, int64_t, const PlayedBy*, double*);
template void prediction_sums<O2_LEVEL>(const double*, const double*, int64_t, double, double, PredictionSums&);

}  // namespace kernels
}  // namespace o2
