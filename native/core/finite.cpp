#include "core/finite.hpp"

#include <limits>
#include <vector>

#include "core/vector_kernels.hpp"

namespace o2 {
namespace {

constexpr double INFINITE = std::numeric_limits<double>::infinity();

void add_free(const ClassSums& of, int64_t j, double weight, double loss) {
  of.sums[j] += (weight - 1) * loss;
  of.sums[of.J + j] += weight - 1;
  of.sums[2 * of.J + j] += (weight - 1) * (weight - 1);
}

void push(const ClassSums& of, const Clipped& pair) {
  int64_t at = of.counts[1]++;
  for (; at > 0 && of.heap[(at - 1) / 2].weight > pair.weight; at = (at - 1) / 2) of.heap[at] = of.heap[(at - 1) / 2];
  of.heap[at] = pair;
}

void pop(const ClassSums& of) {
  const int64_t size = --of.counts[1];
  int64_t at = 0;
  while (2 * at + 1 < size) {
    int64_t child = 2 * at + 1;
    if (child + 1 < size && of.heap[child + 1].weight < of.heap[child].weight) child++;
    if (of.heap[size].weight <= of.heap[child].weight) break;
    of.heap[at] = of.heap[child];
    at = child;
  }
  of.heap[at] = of.heap[size];
}

int64_t best_of(const double* values, int64_t J) {
  int64_t best = 0;
  for (int64_t j = 1; j < J; j++)
    if (values[j] < values[best]) best = j;
  return best;
}

// log Σ_j ω_j L_j of all actions, for a single member, or for equal weights at the start. L [K, J], out [K]
void mixed_scores(const double* L, const double* params, int64_t K, int64_t J, double* out) {
  int64_t alone = 0, likely = 0;
  for (int64_t j = 0; j < J; j++)
    if (params[j] > -INFINITE) alone = j, likely++;
  for (int64_t k = 0; k < K; k++) {
    const double* own = L + k * J;
    double mixed = likely == 1 ? own[alone] : 0.0;
    if (likely > 1)
      for (int64_t j = 0; j < J; j++) mixed += (1.0 / static_cast<double>(J)) * own[j];
    out[k] = log_of(mixed);
  }
}

}  // namespace

void add_row(const ClassSums& of, const double* likelihoods, double loss, double propensity, double alpha) {
  of.counts[0]++;
  while (of.counts[1] > 0 && of.heap[0].weight <= alpha) {  // no longer clipped
    const Clipped freed = of.heap[0];
    const auto member = static_cast<int64_t>(freed.member);
    pop(of);
    of.sums[3 * of.J + member] -= 1;
    of.sums[4 * of.J + member] -= freed.loss;
    add_free(of, member, freed.weight, freed.loss);
  }
  if (vector_kernels().add_free(of, likelihoods, loss, propensity, alpha) == 0) return;
  for (int64_t j = 0; j < of.J; j++) {
    const double weight = likelihoods[j] / propensity;
    if (weight <= alpha) continue;
    of.sums[3 * of.J + j] += 1;
    of.sums[4 * of.J + j] += loss;
    push(of, {weight, static_cast<double>(j), loss});
  }
}

double add_rows(const ClassSums& of, const double* L, const double* losses, const double* propensities, int64_t n,
                const double* numbers, double total, int64_t* members) {
  std::vector<double> values(members ? of.J : 0);
  for (int64_t s = 0; s < n; s++) {
    add_row(of, L + s * of.J, losses[s], propensities[s], clip_at(numbers, static_cast<double>(of.counts[0] + 1)));
    total += losses[s];
    if (!members) continue;
    const double rows = static_cast<double>(of.counts[0]);
    vector_kernels().class_values(of, baseline_at(numbers, total, rows), penalty_at(numbers, rows), values.data());
    members[s] = best_of(values.data(), of.J);
  }
  return total;
}

double finite_rounds(const ClassSums& of, const FiniteRounds& rounds, double* params, const Acting& acting, const double* numbers,
                     double total) {
  const auto [m, K, L, losses, uniforms, warm_start, actions, propensities] = rounds;
  std::vector<double> scores(K), pi(K), values(of.J);
  for (int64_t r = 0; r < m; r++) {
    const double* own = L + r * K * of.J;
    mixed_scores(own, params, K, of.J, scores.data());
    acting_row(scores.data(), 1, K, K, acting, pi.data());
    const int64_t action = draw_one(pi.data(), K, uniforms[r]);
    actions[r] = action, propensities[r] = pi[action];
    const double loss = losses[r * K + action];
    add_row(of, own + action * of.J, loss, pi[action], clip_at(numbers, static_cast<double>(of.counts[0] + 1)));
    total += loss;
    const double n = static_cast<double>(of.counts[0]);
    if (of.counts[0] < warm_start) continue;
    vector_kernels().class_values(of, baseline_at(numbers, total, n), penalty_at(numbers, n), values.data());
    const int64_t best = best_of(values.data(), of.J);
    for (int64_t j = 0; j < of.J; j++) params[j] = j == best ? 0.0 : -INFINITE;
  }
  return total;
}

}  // namespace o2
