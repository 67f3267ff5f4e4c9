#include "core/outcome.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/predictions.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array;

namespace {

// scores [M, total], out [M, n]
void played_log_odds(Array<const double, 2> scores, Array<const int64_t> offsets, Array<const int64_t> actions,
                     Array<const bool> competing, Array<const double> tau, Array<double, 2> out) {
  const auto [M, total] = scores.shape;
  const int64_t n = actions.size();
  if (offsets.size() != n + 1 || competing.size() != M || tau.size() != M || out.shape[0] != M || out.shape[1] != n)
    throw std::invalid_argument("played_log_odds: found shapes that do not fit");
  for (int64_t s = 0; s < n; s++)
    if (actions[s] < 0 || offsets[s] < 0 || actions[s] >= offsets[s + 1] - offsets[s] || offsets[s + 1] > total)
      throw std::invalid_argument("played_log_odds: found an action out of range");
  std::vector<o2::Predictions::Member> members;
  for (int64_t m = 0; m < M; m++) members.push_back({competing[m], tau[m]});
  o2::Predictions predictions;
  predictions.begin(std::move(members));
  std::vector<double> own;
  for (int64_t s = 0; s < n; s++) {
    const int64_t K = offsets[s + 1] - offsets[s];
    own.resize(M * K);
    for (int64_t m = 0; m < M; m++) std::copy_n(scores.data + m * total + offsets[s], K, own.data() + m * K);
    predictions.add(own.data(), K, actions[s]);
  }
  predictions.read(0, n, out.data, n);
}

// z [M, n], out [6, M]
void prediction_sums(Array<const double, 2> z, Array<const double> rewards, Array<const double> level,
                     Array<const double> slope, Array<double, 2> out) {
  const auto [M, n] = z.shape;
  if (rewards.size() != n || level.size() != M || slope.size() != M || out.shape[0] != 6 || out.shape[1] != M)
    throw std::invalid_argument("prediction_sums: found shapes that do not fit");
  for (int64_t m = 0; m < M; m++) {
    const auto [likelihood, by_level, by_slope, h, hz, hzz] =
        o2::prediction_sums(z.data + m * n, rewards.data, n, level[m], slope[m]);
    const double found[] = {likelihood, by_level, by_slope, h, hz, hzz};
    for (int i = 0; i < 6; i++) out.data[i * M + m] = found[i];
  }
}

std::pair<double, double> weighted_sums(Array<const double> values, std::optional<Array<const double>> weights) {
  o2::expect(!weights || weights->size() == values.size(), "weighted_sums: found another number of weights");
  const auto [size, total] = o2::weighted_sums(values.data, weights ? weights->data : nullptr, values.size());
  return {size, total};
}

double added_up(double total, Array<const double> values) {
  for (const double value : values.span()) total += value;
  return total;
}

// state [6, M] is replaced; z [M, n]
void watch(Array<double, 2> state, Array<const double, 2> z, Array<const double> rewards, double memory, double block) {
  const auto [M, n] = z.shape;
  o2::expect(state.shape[0] == 6 && state.shape[1] == M && rewards.size() == n, "watch: found shapes that do not fit");
  double* s = state.data;
  for (int64_t m = 0; m < M; m++) {
    const o2::Watched before{s[m], s[M + m], s[2 * M + m], s[3 * M + m], s[4 * M + m], s[5 * M + m]};
    const auto after = o2::watched(before, z.data + m * n, rewards.data, n, memory, block);
    s[m] = after.score, s[M + m] = after.level, s[2 * M + m] = after.turn;
    s[3 * M + m] = after.h, s[4 * M + m] = after.hz, s[5 * M + m] = after.hzz;
  }
}

}  // namespace

void bind_outcome(nb::module_& m) {
  m.def("played_log_odds", &played_log_odds, nb::arg("scores"), nb::arg("offsets"), nb::arg("actions"), nb::arg("competing"),
        nb::arg("tau"), nb::arg("out"), "Compute z of the played actions, as predicted by M members. scores [M, total]");
  m.def("weighted_sums", &weighted_sums, nb::arg("values"), nb::arg("weights").none(),
        "Return Σ weights and Σ weighted values, added row by row. weights: None for one each");
  m.def("added_up", &added_up, nb::arg("total"), nb::arg("values"), "Return a total with more values, added one by one.");
  m.def("watch", &watch, nb::arg("state"), nb::arg("z"), nb::arg("rewards"), nb::arg("memory"), nb::arg("block"),
        "Update what a monitor of changes knows of M members by a block of rows, in place. state [6, M], z [M, n]");
  m.def("prediction_sums", &prediction_sums, nb::arg("z"), nb::arg("rewards"), nb::arg("level"), nb::arg("slope"),
        nb::arg("out"), "Compute Σ log-likelihood of rewards and its derivatives for M members. z [M, n], out [6, M]");
}
