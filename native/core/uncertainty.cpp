#include "core/uncertainty.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/deciding_kernels.hpp"
#include "core/levels.hpp"
#include "core/sparse.hpp"
#include "core/special.hpp"

namespace o2 {
namespace {

constexpr double OF_SETS = 3;  // λ of action sets
constexpr double OPTIMISM = 0.6;
constexpr int64_t FEWEST_NEW = 8;
constexpr double SHARE_NEW = 0.02;

double prior(int64_t K) { return K == 1 ? OF_SETS : std::min(1.0, 8 / static_cast<double>(K)); }

// Of one row of an action set: Σ φ²/B over n entries that are not 0.
double of_entries(double sum, int64_t n) {
  const auto entries = static_cast<double>(n);
  return n == 0 ? 0 : std::min(1.0, 2 / entries) / entries * sum;
}

const DecidingKernels& deciding() {
  static const DecidingKernels& found = O2_CHOSEN(deciding);
  return found;
}

}  // namespace

Standardised::Standardised(const Plan& plan) : shift(plan.shift.begin(), plan.shift.end()), scale(plan.scale.begin(), plan.scale.end()), clip(plan.clip) {}

Standardised::Standardised(std::vector<double> shift, std::vector<double> scale, double clip)
    : shift(std::move(shift)), scale(std::move(scale)), clip(clip) {}

double Standardised::operator()(const float* inputs, int64_t i) const {
  return std::min(std::max((static_cast<double>(inputs[i]) - shift[i]) * scale[i], -clip), clip);
}

Uncertainty::Uncertainty(Standardised inputs, std::vector<double> centre, std::vector<double> level, std::vector<double> spread,
                         double optimism)
    : inputs_(std::move(inputs)), centre_(std::move(centre)), level_(std::move(level)), spread_(std::move(spread)), optimism_(optimism) {
  const int64_t K = n_actions(), d = this->inputs();
  columns_ = (K + SCORES_AT_ONCE - 1) / SCORES_AT_ONCE * SCORES_AT_ONCE;
  inverse_.assign(d * columns_, 0.0);
  for (int64_t i = 0; i < d; i++)
    for (int64_t k = 0; k < K; k++) inverse_[i * columns_ + k] = 1 / spread_[i * K + k];
}

// of_inputs: Σ (φ - φ̄)²/B of each action
void Uncertainty::combine(const double* of_inputs, int64_t d, Doubt& found) const {
  const auto n = static_cast<double>(d), K = static_cast<double>(n_actions());
  const double factor = d == 0 ? 0 : std::max(0.0, 1 - 2 / K) * std::min(1.0, 2 / n) / n;
  found.resize(n_actions());
  for (int64_t k = 0; k < n_actions(); k++) {
    const double context = factor * of_inputs[k];
    found.variance[k] = 1 / level_[k] + context;
    found.bonus[k] = optimism_ * std::sqrt(context);
  }
}

void Uncertainty::at(const float* inputs, Doubt& found) const {
  const int64_t d = this->inputs();
  found.room.resize(d + columns_);
  double *squares = found.room.data(), *of_inputs = squares + d;
  for (int64_t i = 0; i < d; i++) {
    const double off = inputs_(inputs, i) - centre_[i];
    squares[i] = off * off;
  }
  deciding().weighted_sums(squares, 1, d, d, inverse_.data(), columns_, of_inputs);
  combine(of_inputs, d, found);
}

void Uncertainty::at(const int32_t* slots, const float* values, int64_t n, Doubt& found) const {
  const int64_t K = n_actions(), known = static_cast<int64_t>(spread_.size()) / K;
  std::vector<double>& room = found.room;
  room.assign(K, 0.0);
  for (int64_t j = 0; j < n; j++) {
    if (slots[j] >= known) continue;  // it came since: it is as uncertain for all actions
    const double value = values[j], square = value * value;
    const double* own = spread_.data() + slots[j] * K;
    for (int64_t k = 0; k < K; k++) room[k] += square * (1 / own[k]);
  }
  combine(room.data(), n, found);
}

void Uncertainty::at_each(const float* rows, int64_t n, Doubt& found) const {
  const int64_t d = inputs();
  found.resize(n);
  for (int64_t r = 0; r < n; r++) {
    double sum = 0;
    int64_t entries = 0;
    for (int64_t i = 0; i < d; i++) {
      const double value = inputs_(rows + r * d, i);
      sum += value * value * inverse_[i * columns_], entries += value != 0;
    }
    found.variance[r] = of_entries(sum, entries), found.bonus[r] = 0;
  }
}

void Uncertainty::at_each(const int32_t* slots, const float* values, const int64_t* offsets, int64_t n, Doubt& found) const {
  const auto known = static_cast<int64_t>(spread_.size());
  found.resize(n);
  for (int64_t r = 0; r < n; r++) {
    double sum = 0;
    int64_t entries = 0;
    for (int64_t j = offsets[r] + 1; j < offsets[r + 1]; j++) {
      const double value = values[j];
      sum += value * value / (slots[j] < known ? spread_[slots[j]] : OF_SETS), entries += value != 0;
    }
    found.variance[r] = of_entries(sum, entries), found.bonus[r] = 0;
  }
}

int64_t Curvature::next() const {
  return rows + std::max(FEWEST_NEW, static_cast<int64_t>(SHARE_NEW * static_cast<double>(rows - base)));
}

void Curvature::begin(int64_t since, int64_t n) {
  base = rows = since, renewed = since + n, total = 0;
  for (auto* sums : {&level, &spread, &centre}) std::fill(sums->begin(), sums->end(), 0.0);
}

void Curvature::begin(int64_t since, const Standardised& inputs, const float* X, int64_t n) {
  const auto d = static_cast<int64_t>(centre.size());
  begin(since, n);
  for (int64_t r = 0; r < n; r++)
    for (int64_t i = 0; i < d; i++) centre[i] += inputs(X + r * d, i);
  for (double& each : centre) each /= static_cast<double>(std::max<int64_t>(n, 1));
}

void Curvature::add(const Standardised& inputs, const float* X, const int64_t* actions, const double* h, int64_t n) {
  const auto d = static_cast<int64_t>(centre.size()), K = static_cast<int64_t>(level.size());
  for (int64_t r = 0; r < n; r++) {
    double* own = spread.data() + actions[r];
    level[actions[r]] += h[r], total += h[r];
    for (int64_t i = 0; i < d; i++) {
      const double off = inputs(X + r * d, i) - centre[i];
      own[i * K] += h[r] * (off * off);
    }
  }
  rows += n;
}

void Curvature::add(const SparseColumns& of, int64_t slots, const int64_t* actions, const double* h) {
  const auto K = static_cast<int64_t>(level.size());
  spread.resize(std::max<int64_t>(slots * K, static_cast<int64_t>(spread.size())));
  for (int64_t r = 0; r < of.n; r++) {
    level[actions[r]] += h[r], total += h[r];
    for (int64_t j = of.offsets[r] + 1; j < of.offsets[r + 1]; j++) {
      const double value = of.values[j];
      spread[of.indices[j] * K + actions[r]] += h[r] * (value * value);
    }
  }
  rows += of.n;
}

std::shared_ptr<const Uncertainty> Curvature::uncertainty(const Standardised& inputs) const {
  std::vector<double> A = level, B = spread;
  const double least = prior(static_cast<int64_t>(level.size())), n = static_cast<double>(rows - base);
  for (double& each : A) each += least;
  for (double& each : B) each += least;
  const double mean = rows > base ? total / n : 0.25;
  const double optimism = OPTIMISM * log_of(1 + n) * std::max(0.0, 1 - 4 * mean);
  return std::make_shared<const Uncertainty>(inputs, centre, std::move(A), std::move(B), optimism);
}

}  // namespace o2
