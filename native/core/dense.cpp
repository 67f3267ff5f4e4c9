#include "core/dense.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "core/lanes.hpp"
#include "core/levels.hpp"
#include "core/penalty.hpp"
#include "core/shrinking.hpp"
#include "core/threads.hpp"

namespace o2 {

const DenseKernels& dense_kernels() {
  static const DenseKernels& found = O2_CHOSEN(dense);
  return found;
}

// -- rows

DenseRows::DenseRows(Plan plan, const float* X, int64_t n, const Columns& columns, int K, bool by_action,
                     int64_t panel_rows, int64_t held)
    : plan_(std::move(plan)), X_(X), n_(n), K_(K) {
  const int d = plan_.d, m = plan_.directions_of, p = plan_.products(), width = 1 + d + p;
  factors_ = (1 + d + m) | 1;  // odd: lanes of one factor then do not all fall into the same sets of the cache
  first_.assign(width, 0), second_.assign(width, 0);
  shift_.assign(width, 0), scale_.assign(width, 1);
  for (int i = 0; i < d; i++) first_[1 + i] = (1 + i) * LANES;
  int at = 1 + d;
  const int factors = p ? (m ? m : d) : 0, from = m ? 1 + d : 1;
  if (factors * (factors + 1) / 2 != p) throw std::invalid_argument("products: found a number that fits no inputs");
  for (int i = 0; i < factors; i++)
    for (int j = i; j < factors; j++, at++) {
      first_[at] = (from + i) * LANES, second_[at] = (from + j) * LANES;
      shift_[at] = plan_.product_shift[at - 1 - d], scale_[at] = plan_.product_scale[at - 1 - d];
    }
  const int64_t count = std::max<int64_t>(1, (n + panel_rows - 1) / panel_rows);
  panels_.resize(count);
  for (int64_t i = 0; i < count; i++) {
    Panel& one = panels_[i];
    one.start = i * panel_rows;
    one.rows = static_cast<int>(std::min(panel_rows, n - one.start));
    lay(one, columns, by_action);
    held_ += static_cast<int64_t>(one.vectors) * factors_ * LANES * 4;
  }
  if (held_ > held) held_ = 0;
  if (held_ == 0) return;
  for (Panel& one : panels_) {
    one.x.resize(static_cast<size_t>(one.vectors) * factors_ * LANES);
    dense_kernels().lay_out(rows_of_panel(one), 0, one.vectors, one.x.data());
  }
}

const Products DenseRows::products() const {
  return {features(), first_.data(), second_.data(), plan_.products() == 0};
}

constexpr float LARGEST = std::numeric_limits<float>::max();  // instead of ∞: ∞ times 0 is NaN

void DenseRows::lay(Panel& one, const Columns& columns, bool by_action) {
  const int n = one.rows;
  const int64_t start = one.start;
  by_action = by_action && n >= 12 * K_;
  std::vector<int> at(K_, 0);  // of each action's next row
  int places = up_to_lanes(n);
  if (by_action) {
    for (int i = 0; i < n; i++) at[columns.actions[start + i]]++;
    places = 0;
    for (int k = 0; k < K_; k++) {
      const int size = up_to_lanes(at[k]);
      one.alike.insert(one.alike.end(), size / LANES, k);
      at[k] = places, places += size;
    }
    one.order.assign(places, -1);
  }
  one.vectors = places / LANES;
  one.action.assign(places, -1), one.reward.assign(places, 0);
  if (columns.weights) one.weight.assign(places, 0);
  if (columns.propensities) one.inverse.assign(places, 0);
  for (int i = 0; i < n; i++) {
    const int64_t r = start + i, action = columns.actions[r];
    const int place = by_action ? at[action]++ : i;
    if (by_action) one.order[place] = i;
    one.action[place] = static_cast<float>(action), one.reward[place] = static_cast<float>(columns.residual(r));
    if (columns.weights) one.weight[place] = static_cast<float>(columns.weights[r]);
    if (columns.propensities) one.inverse[place] = std::min(static_cast<float>(1 / columns.propensities[r]), LARGEST);
  }
}

Rows DenseRows::rows_of_panel(const Panel& one) const {
  const auto at = [](const auto& array) { return array.empty() ? nullptr : array.data(); };
  const Raw raw = {X_ + one.start * plan_.d, at(one.order), plan_.shift.data(), plan_.scale.data(), at(plan_.directions),
                   plan_.d, plan_.directions_of, plan_.clip};
  return {one.vectors, factors_, one.rows, at(one.x), one.action.data(), one.reward.data(), at(one.weight), at(one.inverse),
          at(one.alike), raw};
}

template <class T>
void DenseRows::pack(const double* theta, T* packed) const {
  const int Q = features(), width = plan_.width(), skip = 1 - plan_.intercept;
  std::fill_n(packed, static_cast<size_t>(K_) * Q, T(0));
  std::vector<double> scaled(Q);
  for (int c = 0; c < chunks_of(K_); c++) {
    const int kc = chunk_size(K_, c), k0 = chunk_start(K_, c);
    T* w = packed + static_cast<int64_t>(k0) * Q;
    for (int a = 0; a < kc; a++) {
      const double* own = theta + static_cast<int64_t>(k0 + a) * width;
      double centred[4] = {};  // Σ scaled · shift, in four parts
      for (int q = 1; q < width + skip; q++) scaled[q] = own[q - skip] * scale_[q];
      for (int q = 1 + plan_.d; q < width + skip; q++) centred[q % 4] += scaled[q] * shift_[q];
      w[a] = static_cast<T>((plan_.intercept ? own[0] : 0.0) - ((centred[0] + centred[2]) + (centred[1] + centred[3])));
      for (int q = 1; q < width + skip; q++) w[q * kc + a] = static_cast<T>(scaled[q]);
    }
  }
}

template <class T>
void DenseRows::unpack(const T* gradient, double* to) const {
  const int Q = features(), width = plan_.width(), skip = 1 - plan_.intercept;
  for (int c = 0; c < chunks_of(K_); c++) {
    const int kc = chunk_size(K_, c), k0 = chunk_start(K_, c);
    const T* g = gradient + static_cast<int64_t>(k0) * Q;
    for (int a = 0; a < kc; a++) {
      double* own = to + static_cast<int64_t>(k0 + a) * width;
      const double constant = g[a];
      if (plan_.intercept) own[0] = constant;
      for (int q = 1; q < width + skip; q++) own[q - skip] = (g[q * kc + a] - shift_[q] * constant) * scale_[q];
    }
  }
}

template void DenseRows::pack(const double* theta, float* packed) const;
template void DenseRows::pack(const double* theta, double* packed) const;
template void DenseRows::unpack(const float* gradient, double* to) const;
template void DenseRows::unpack(const double* gradient, double* to) const;

// -- objectives

namespace {

// Work arrays of one thread.
struct Room {
  std::vector<float> gradient;
  Lined work;
};

// Sums of all panels, in order. one(panel's rows, room) -> its sums; writes `parts` packed gradients to room.gradient.
template <class One>
Sums over_panels(const DenseRows& rows, int parts, int threads, const One& one) {
  const int K = rows.actions(), Q = rows.features(), block = block_of(rows.factors());
  const int64_t size = static_cast<int64_t>(K) * rows.plan().width(), n_panels = rows.panels();
  const size_t work = laid_of(rows.factors()) + static_cast<size_t>(3) * K * block * LANES + (static_cast<size_t>(parts) * K + 1) * Q * LANES + Q;
  std::vector<Sums> found(n_panels);
  in_parallel(n_panels, threads, [&](int64_t panel) {
    thread_local Room room;
    room.work.resize(std::max(room.work.size(), work));
    room.gradient.resize(static_cast<size_t>(parts) * K * Q);
    Sums& own = found[panel];
    one(panel, rows.panel(panel), room, own);
    own.gradients.resize(parts * size);
    for (int part = 0; part < parts; part++)
      rows.unpack(room.gradient.data() + static_cast<int64_t>(part) * K * Q, own.gradients.data() + part * size);
  });
  for (int64_t panel = 1; panel < n_panels; panel++) {
    for (int i = 0; i < 3; i++) found[0].values[i] += found[panel].values[i];
    for (int64_t i = 0; i < parts * size; i++) found[0].gradients[i] += found[panel].gradients[i];
  }
  return std::move(found[0]);
}

double squares(const double* x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; i++) total += x[i] * x[i];
  return total;
}

class OutcomeValue final : public DenseValue {
 public:
  OutcomeValue(std::shared_ptr<const DenseRows> rows, const OutcomeSettings& settings)
      : rows_(std::move(rows)), settings_(settings), size_(static_cast<int64_t>(rows_->actions()) * rows_->plan().width()) {}

  int64_t n_params() const override { return size_ + 1; }
  int64_t parts() const override { return 1; }

  Sums sums(const double* params, int threads) const override {
    const int K = rows_->actions();
    const auto packed = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(K) * rows_->features());
    rows_->pack(params, packed.get());
    const auto tau = static_cast<float>(params[size_]);
    const auto& kernels = dense_kernels();
    const auto kernel = settings_.competing ? kernels.competing : kernels.independent;
    return over_panels(*rows_, 1, threads, [&](int64_t, const Rows& rows, Room& room, Sums& own) {
      const OutcomeSums found = kernel(rows, rows_->products(), K, packed.get(), tau, room.gradient.data(), room.work.data());
      own.values[0] = found.loss, own.values[1] = found.pulled;
    });
  }

  double value(const double* params, double* gradient, int threads) const override {
    const Sums found = sums(params, threads);
    const double size = settings_.size, shrink = settings_.l2 / size, tau = params[size_];
    std::copy_n(found.gradients.data(), size_, gradient);
    double value = found.values[0] / size + 0.5 * shrink * shrunk(params, size_, size, shrink, gradient);
    gradient[size_] = 0;
    if (settings_.competing) {
      value += 0.5 * settings_.level_l2 * tau * tau / size;
      gradient[size_] = (settings_.level_l2 * tau - found.values[1]) / size;
    }
    return value;
  }

 private:
  std::shared_ptr<const DenseRows> rows_;
  OutcomeSettings settings_;
  int64_t size_;
};

class PessimisticValue final : public DenseValue {
 public:
  PessimisticValue(std::shared_ptr<const DenseRows> rows, const PessimisticSettings& settings)
      : rows_(std::move(rows)), settings_(settings), size_(static_cast<int64_t>(rows_->actions()) * rows_->plan().width()) {}

  int64_t n_params() const override { return size_; }
  int64_t parts() const override { return 2; }

  Sums sums(const double* params, int threads) const override {
    const int K = rows_->actions();
    std::vector<float> packed(static_cast<size_t>(K) * rows_->features());
    rows_->pack(params, packed.data());
    return over_panels(*rows_, 2, threads, [&](int64_t panel, const Rows& rows, Room& room, Sums& own) {
      const Control control = {settings_.control, settings_.stride, rows_->start_of(panel),
                               static_cast<float>(settings_.baseline)};
      const PessimisticSums found = dense_kernels().pessimistic(rows, rows_->products(), K, packed.data(),
                                                                static_cast<float>(settings_.alpha), control,
                                                                room.gradient.data(), room.work.data());
      own.values[0] = found.risk, own.values[1] = found.variance, own.values[2] = found.modelled;
    });
  }

  double value(const double* params, double* gradient, int threads) const override {
    return pessimistic_combine(sums(params, threads), params, size_, settings_.size, settings_.l2, settings_.penalty, gradient);
  }

 private:
  std::shared_ptr<const DenseRows> rows_;
  PessimisticSettings settings_;
  int64_t size_;
};

}  // namespace

double pessimistic_combine(const Sums& sums, const double* params, int64_t n, double size, double l2, const Phi& penalty,
                           double* gradient) {
  const double shrink = l2 / size;
  const auto [pessimism, slope] = phi(sums.values[1] / size, penalty);
  const double *of_risk = sums.gradients.data(), *of_variance = of_risk + n;
  for (int64_t i = 0; i < n; i++) gradient[i] = (of_risk[i] + slope * of_variance[i]) / size + shrink * params[i];
  return (sums.values[0] + sums.values[2]) / size + pessimism + 0.5 * shrink * squares(params, n);
}

std::unique_ptr<DenseValue> outcome_value(std::shared_ptr<const DenseRows> rows, const OutcomeSettings& settings) {
  return std::make_unique<OutcomeValue>(std::move(rows), settings);
}

std::unique_ptr<DenseValue> pessimistic_value(std::shared_ptr<const DenseRows> rows, const PessimisticSettings& settings) {
  return std::make_unique<PessimisticValue>(std::move(rows), settings);
}

}  // namespace o2
