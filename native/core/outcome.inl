#include "core/math.hpp"
#include "core/outcome.hpp"

namespace o2 {
namespace kernels {

// Rows in lanes: at each action, exponentials of all rows. Loops over as many lanes vectorise in whole registers; those over
// eight are unrolled first.
template <int LEVEL>
void played_log_odds(const double* scores, int64_t K, const int64_t* actions, double tau, double* out) {
  double top[ROWS_IN_LANES], total[ROWS_IN_LANES], e[ROWS_IN_LANES];
  for (int64_t l = 0; l < ROWS_IN_LANES; l++) top[l] = -std::numeric_limits<double>::infinity(), total[l] = 0;
  for (int64_t k = 0; k < K; k++) {
    const double* own = scores + k * ROWS_IN_LANES;
    for (int64_t l = 0; l < ROWS_IN_LANES; l++) {
      const double rival = actions[l] == k ? -std::numeric_limits<double>::infinity() : own[l];
      top[l] = top[l] < rival ? rival : top[l];
    }
  }
  for (int64_t k = 0; k < K; k++) {
    const double* own = scores + k * ROWS_IN_LANES;
    for (int64_t l = 0; l < ROWS_IN_LANES; l++) e[l] = exp_of(own[l] - top[l]);
    for (int64_t l = 0; l < ROWS_IN_LANES; l++) total[l] += actions[l] == k ? 0.0 : e[l];
  }
  for (int64_t l = 0; l < ROWS_IN_LANES; l++) total[l] = log_of(total[l]);
  for (int64_t l = 0; l < ROWS_IN_LANES; l++) out[l] = scores[actions[l] * ROWS_IN_LANES + l] - tau - (top[l] + total[l]);
}

// Eight sums of each kind, of every eighth row, and these in order.
template <int LEVEL>
void prediction_sums(const double* z, const double* rewards, int64_t n, double level, double slope, PredictionSums& sums) {
  constexpr int64_t SOME = 64;  // rows at a time: loops over all of them vectorise in whole registers
  double part[6][8] = {}, x[SOME], u[SOME], m[SOME], log_m[SOME];
  for (int64_t from = 0; from < n; from += SOME) {
    const int64_t some = n - from < SOME ? n - from : SOME, all = (some + 7) & ~int64_t{7};
    for (int64_t i = 0; i < some; i++) x[i] = z[from + i];
    for (int64_t i = some; i < all; i++) x[i] = 0;
    for (int64_t i = 0; i < all; i++) x[i] = x[i] < -FAR ? -FAR : x[i] > FAR ? FAR : x[i];
    for (int64_t i = 0; i < all; i++) u[i] = level + slope * x[i];
    for (int64_t i = 0; i < all; i++) m[i] = exp_of(-u[i]);
    for (int64_t i = 0; i < all; i++) m[i] = 1 / (1 + m[i]);
    for (int64_t i = 0; i < all; i++) log_m[i] = m[i] < SURE ? SURE : m[i] > 1 - SURE ? 1 - SURE : m[i];
    for (int64_t i = 0; i < all; i++) log_m[i] = log_of(log_m[i]);
    for (int64_t i = 0; i < all; i++) u[i] = u[i] < -FAR ? -FAR : u[i] > FAR ? FAR : u[i];
    const auto add = [&](int64_t i, int64_t l) {  // log(1 - m) = log m - u
      const double r = rewards[from + i + l], of = m[i + l], at = x[i + l], off = r - of, h = of * (1 - of);
      part[0][l] += log_m[i + l] - (1 - r) * u[i + l];
      part[1][l] += off, part[2][l] += off * at;
      part[3][l] += h, part[4][l] += h * at, part[5][l] += h * at * at;
    };
    int64_t i = 0;
    for (; i + 8 <= some; i += 8)
      for (int64_t l = 0; l < 8; l++) add(i, l);
    for (int64_t l = 0; i + l < some; l++) add(i, l);
  }
  double total[6];
  for (int i = 0; i < 6; i++) {
    const double* p = part[i];
    total[i] = ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
  }
  sums = {total[0], total[1], total[2], total[3], total[4], total[5]};
}

template <int LEVEL>
void mean_curvature(const double* z, int64_t M, int64_t n, int64_t stride, const double* weights, double* h) {
  double m[ROWS_IN_LANES];
  for (int64_t from = 0; from < n; from += ROWS_IN_LANES) {
    const int64_t some = n - from < ROWS_IN_LANES ? n - from : ROWS_IN_LANES;
    for (double& each : m) each = 0;
    for (int64_t i = 0; i < M; i++) {
      const double* own = z + i * stride + from;
      double x[ROWS_IN_LANES] = {}, e[ROWS_IN_LANES];
      for (int64_t l = 0; l < some; l++) x[l] = own[l];
      for (int64_t l = 0; l < ROWS_IN_LANES; l++) x[l] = x[l] < -SUREST ? -SUREST : x[l] > SUREST ? SUREST : x[l];
      for (int64_t l = 0; l < ROWS_IN_LANES; l++) e[l] = exp_of(x[l] < 0 ? x[l] : -x[l]);
      for (int64_t l = 0; l < ROWS_IN_LANES; l++) m[l] += weights[i] * ((x[l] < 0 ? e[l] : 1.0) / (1.0 + e[l]));
    }
    for (int64_t l = 0; l < some; l++) h[from + l] = m[l] * (1 - m[l]);
  }
}

template void mean_curvature<O2_LEVEL>(const double*, int64_t, int64_t, int64_t, const double*, double*);
template void played_log_odds<O2_LEVEL>(const double*, int64_t, const int64_t*, double, double*);
template void prediction_sums<O2_LEVEL>(const double*, const double*, int64_t, double, double, PredictionSums&);

}  // namespace kernels
}  // namespace o2
