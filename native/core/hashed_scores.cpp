#include "core/hashed_scores.hpp"

#include "core/sparse.hpp"

namespace o2 {

namespace {

struct Laid {  // rows as members see them
  std::vector<int32_t> slots;
  std::vector<float> values;
  std::vector<int64_t> offsets;
};

Laid laid(const HashedWeights& weights, SparseRows rows) {
  const auto n = static_cast<int64_t>(rows.offsets.size()) - 1;
  const int64_t most = rows.offsets[n] - rows.offsets[0] + n;
  Laid made{std::vector<int32_t>(most), std::vector<float>(most), std::vector<int64_t>(n + 1)};
  to_slots(rows, weights.slot_of.data(), weights.scale, weights.slots, made.slots.data(), made.values.data(), made.offsets.data());
  return made;
}

std::vector<double> scores_of(const HashedWeights& weights, const Laid& rows) {
  const auto n = static_cast<int64_t>(rows.offsets.size()) - 1;
  std::vector<double> scores(n * weights.columns);
  sparse_scores({rows.slots.data(), rows.values.data(), rows.offsets.data(), n}, {weights.W, weights.known, weights.columns}, scores.data());
  return scores;
}

}  // namespace

std::vector<double> hashed_scores(const HashedWeights& weights, SparseRows rows) { return scores_of(weights, laid(weights, rows)); }

Chosen decide_row(const HashedWeights& weights, int64_t members, SparseRows row, const Acting& acting, const Uncertainty* uncertainty, double uniform) {
  const int64_t K = weights.columns / members;
  const Laid own = laid(weights, row);
  std::vector<double> scores = scores_of(weights, own), pi(K);
  Doubt doubt;
  if (uncertainty) uncertainty->at(own.slots.data() + 1, own.values.data() + 1, own.offsets[1] - 1, doubt);
  acting_row(scores.data(), members, K, K, uncertainty ? doubt.in(acting) : acting, pi.data());
  const int64_t action = draw_one(pi.data(), K, uniform);
  return {action, pi[action]};
}

void set_policy(const HashedWeights& weights, SparseRows rows, const Acting& acting, const Uncertainty* uncertainty, double* out) {
  const int64_t M = weights.columns, K = static_cast<int64_t>(rows.offsets.size()) - 1;
  const Laid own = laid(weights, rows);
  const std::vector<double> by_row = scores_of(weights, own);
  Doubt doubt;
  if (uncertainty) uncertainty->at_each(own.slots.data(), own.values.data(), own.offsets.data(), K, doubt);
  std::vector<double> scores(M * K);
  for (int64_t k = 0; k < K; k++)
    for (int64_t m = 0; m < M; m++) scores[m * K + k] = by_row[k * M + m];
  acting_row(scores.data(), M, K, K, uncertainty ? doubt.in(acting) : acting, out);
}

Chosen decide_set(const HashedWeights& weights, SparseRows rows, const Acting& acting, const Uncertainty* uncertainty, double uniform) {
  std::vector<double> pi(rows.offsets.size() - 1);
  set_policy(weights, rows, acting, uncertainty, pi.data());
  const int64_t action = draw_one(pi.data(), static_cast<int64_t>(pi.size()), uniform);
  return {action, pi[action]};
}

}  // namespace o2
