#include "core/math.hpp"
#include "core/outcome.hpp"

namespace o2 {
namespace kernels {

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

template void prediction_sums<O2_LEVEL>(const double*, const double*, int64_t, double, double, PredictionSums&);

}  // namespace kernels
}  // namespace o2
