#include "core/acting_kernels.hpp"
#include "core/eight.hpp"
#include "core/math.hpp"
#include "core/outcome.hpp"

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

constexpr double CALIBRATED = 9.210240366975849;  // largest log-odds of a prediction that are calibrated

// Exponentials of the scores of all members: of those whose actions compete less the largest one, of the others plus τ.
void exponentials_of_members(double* scores, int64_t M, int64_t K, int64_t stride, const double* predicting) {
  for (int64_t m = 0; m < M; m++) {
    double* own = scores + m * stride;
    if (predicting[4 * m] != 0) {
      const double top = largest(own, K);
      for (int64_t k = 0; k < K; k++) own[k] -= top;
    } else {
      const double tau = predicting[4 * m + 1];
      for (int64_t k = 0; k < K; k++) own[k] += tau;
      for (int64_t k = 0; k < K; k++) own[k] = own[k] < -SUREST ? -SUREST : own[k] > SUREST ? SUREST : own[k];
    }
    if (stride != K) exponentials(own, K);
  }
  if (stride == K) exponentials(scores, M * K);  // all members together
}

// The odds of a reward: of competing actions e^-τ π/(1 - π), where the leading one's 1 - π is the sum of the others.
void odds_of_competing(double* own, int64_t K, double tau) {
  const double total = total_of(own, K), least = exp_of(-SUREST), most = exp_of(SUREST), factor = exp_of(-tau);
  if (K == 1) {
    own[0] = factor;
    return;
  }
  int64_t leader = 0;
  for (int64_t k = 1; k < K; k++) leader = own[k] > own[leader] ? k : leader;
  double others = 0;
  for (int64_t k = 0; k < K; k++) others += k == leader ? 0.0 : own[k];
  const double leading = own[leader] / (others > least ? others : least);
  for (int64_t k = 0; k < K; k++) own[k] /= total - (k == leader ? 0.0 : own[k]);
  own[leader] = leading;
  for (int64_t k = 0; k < K; k++) {
    const double odds = factor * own[k];
    own[k] = odds < least ? least : odds > most ? most : odds;
  }
}

// Odds to those of σ(level + slope z).
void calibrate(double* odds, int64_t K, double level, double slope) {
  for (int64_t k = 0; k < K; k++) {
    const double z = log_of(odds[k]), within = z < -CALIBRATED ? -CALIBRATED : z > CALIBRATED ? CALIBRATED : z;
    odds[k] = exp_of(level + slope * within);
  }
}

// The same of fewer than eight actions and members that are not calibrated: eight members at a time. won, lost [K]: Σ ρ m
// and Σ ρ (1 - m)
void predict_few(const double* scores, int64_t from, int64_t some, int64_t K, int64_t stride, const double* weights,
                 const double* predicting, double* __restrict won, double* __restrict lost) {
  const double least = exp_of(-SUREST), most = exp_of(SUREST);
  double e[EIGHT][EIGHT], top[EIGHT], tau[EIGHT], factor[EIGHT], rho[EIGHT];
  bool competing[EIGHT];
  for (int64_t l = 0; l < EIGHT; l++) {
    const double* own = predicting + 4 * (from + (l < some ? l : 0));
    competing[l] = own[0] != 0, tau[l] = own[1], rho[l] = l < some ? weights[from + l] : 0;
    top[l] = -std::numeric_limits<double>::infinity();
  }
  for (int64_t k = 0; k < K; k++)
    for (int64_t l = 0; l < EIGHT; l++) e[k][l] = scores[(from + (l < some ? l : 0)) * stride + k];
  for (int64_t k = 0; k < K; k++)
    for (int64_t l = 0; l < EIGHT; l++) top[l] = e[k][l] > top[l] ? e[k][l] : top[l];
  for (int64_t l = 0; l < EIGHT; l++) factor[l] = exp_of(-tau[l]);
  for (int64_t k = 0; k < K; k++)
    for (int64_t l = 0; l < EIGHT; l++) {
      const double alone = e[k][l] + tau[l], within = alone < -SUREST ? -SUREST : alone > SUREST ? SUREST : alone;
      e[k][l] = exp_of(competing[l] ? e[k][l] - top[l] : within);
    }
  for (int64_t k = 0; k < K; k++) {
    double others[EIGHT] = {};
    for (int64_t j = 0; j < K; j++)
      if (j != k)
        for (int64_t l = 0; l < EIGHT; l++) others[l] += e[j][l];
    for (int64_t l = 0; l < EIGHT; l++) {
      // The odds are for/against, within [least, most].
      const double against = competing[l] && K > 1 ? (others[l] > least ? others[l] : least) : 1;
      const double given = competing[l] ? (K > 1 ? factor[l] * e[k][l] : factor[l]) : e[k][l], low = least * against, high = most * against;
      const double within = given < low ? low : given > high ? high : given, part = rho[l] / (within + against);
      others[l] = part * against, top[l] = part * within;
    }
    for (int64_t l = 0; l < some; l++) won[k] += top[l], lost[k] += others[l];
  }
}

void predict(double* scores, int64_t M, int64_t K, int64_t stride, const double* weights, const double* predicting, double* __restrict out) {
  for (int64_t k = 0; k < K; k++) out[k] = 0;
  bool calibrated = false;
  for (int64_t m = 0; m < M; m++) calibrated = calibrated || predicting[4 * m + 2] != 0 || predicting[4 * m + 3] != 1;
  if (K < EIGHT && !calibrated) {
    double lost[EIGHT] = {};
    for (int64_t from = 0; from < M; from += EIGHT)
      predict_few(scores, from, M - from < EIGHT ? M - from : EIGHT, K, stride, weights, predicting, out, lost);
    for (int64_t k = 0; k < K; k++) out[k] /= lost[k];
    return logarithms(out, K);
  }
  exponentials_of_members(scores, M, K, stride, predicting);
  for (int64_t m = 0; m < M; m++) {
    double* own = scores + m * stride;
    const double *how = predicting + 4 * m, weight = weights[m];
    if (how[0] != 0) odds_of_competing(own, K, how[1]);
    if (how[2] != 0 || how[3] != 1) calibrate(own, K, how[2], how[3]);
    for (int64_t k = 0; k < K; k++) out[k] += weight * (own[k] / (1 + own[k]));  // Σ ρ m
    for (int64_t k = 0; k < K; k++) own[k] = weight / (1 + own[k]);              // ρ (1 - m)
  }
  for (int64_t m = 1; m < M; m++)
    for (int64_t k = 0; k < K; k++) scores[k] += scores[m * stride + k];
  for (int64_t k = 0; k < K; k++) out[k] /= scores[k];
  logarithms(out, K);
}

}  // namespace

const ActingKernels O2_TABLE(acting) = {softmax_of, mix, predict};

}  // namespace o2
