#include "core/gaussian.hpp"

#include <algorithm>

#include "core/double_rows.hpp"
#include "core/lanes.hpp"
#include "core/levels.hpp"
#include "core/math.hpp"
#include "core/threads.hpp"

namespace o2 {
namespace {

const GaussianKernels& kernels() {
  static const GaussianKernels& found = O2_CHOSEN(gaussian);
  return found;
}

constexpr double FARTHEST = 300.0;  // limit of |log scale|: a line search may overflow

class GaussianValue final : public DenseValue {
 public:
  GaussianValue(std::shared_ptr<const DenseRows> rows, const RealActions& actions, const GaussianSettings& settings)
      : rows_(std::move(rows)), settings_(settings), width_(rows_->plan().width()) {
    for (int64_t panel = 0; panel < rows_->panels(); panel++) {
      const int64_t start = rows_->start_of(panel), n = rows_->rows_of(panel);
      const size_t places = up_to_lanes(static_cast<int>(n));
      starts_.push_back(static_cast<int64_t>(centred_.size()));
      const auto lay = [&](const double* from, std::vector<double>& to) {
        to.insert(to.end(), from + start, from + start + n);
        to.resize(to.size() + places - n);
      };
      lay(actions.centred, centred_), lay(actions.residuals, residuals_);
      log_propensities_.resize(centred_.size());
      kernels().logarithms(actions.propensities + start, n, log_propensities_.data() + starts_.back());
    }
  }

  int64_t n_params() const override { return width_ + settings_.learn_scale; }
  int64_t parts() const override { return 2; }

  Sums sums(const double* params, int threads) const override {
    const int count = 1 + rows_->plan().d + rows_->plan().products();
    std::vector<double> W(rows_->features());
    rows_->pack(params, W.data());
    double log_scale = log_of(settings_.scale), scale = settings_.scale;
    if (settings_.learn_scale) log_scale = std::clamp(params[width_], -FARTHEST, FARTHEST), scale = exp_of(log_scale);
    const int64_t n_panels = rows_->panels(), size = n_params();
    std::vector<Sums> found(n_panels);
    in_parallel(n_panels, threads, [&](int64_t panel) {
      const int64_t start = starts_[panel];
      const Rows rows = rows_->panel(panel);
      const int64_t places = static_cast<int64_t>(rows.vectors) * LANES;
      Lined room(laid_of(rows.factors));
      std::vector<double> gradient(2 * count), first(places), second(places);
      double_rows().scores(rows, rows_->products(), count, W.data(), first.data(), room.data());
      const CentredRows own = {centred_.data() + start, residuals_.data() + start, log_propensities_.data() + start};
      const GaussianSums made =
          kernels().partial(rows.rows, places, own, {scale, log_scale, settings_.alpha}, first.data(), second.data());
      double_rows().pull(rows, rows_->products(), count, first.data(), second.data(), gradient.data(),
                         room.data());
      Sums& to = found[panel];
      to.values[0] = made.risk, to.values[1] = made.variance;
      to.gradients.assign(2 * size, 0.0);
      for (int part = 0; part < 2; part++) rows_->unpack(gradient.data() + part * count, to.gradients.data() + part * size);
      if (settings_.learn_scale) to.gradients[width_] = made.risk_by_scale, to.gradients[size + width_] = made.variance_by_scale;
    });
    for (int64_t panel = 1; panel < n_panels; panel++) {
      for (int i = 0; i < 2; i++) found[0].values[i] += found[panel].values[i];
      for (int64_t i = 0; i < 2 * size; i++) found[0].gradients[i] += found[panel].gradients[i];
    }
    return std::move(found[0]);
  }

  double value(const double* params, double* gradient, int threads) const override {
    const int64_t n = n_params();
    return pessimistic_combine(sums(params, threads), params, n, settings_.size, settings_.l2, settings_.penalty, gradient);
  }

 private:
  std::shared_ptr<const DenseRows> rows_;
  GaussianSettings settings_;
  int64_t width_;
  std::vector<int64_t> starts_;  // of the panels, in the columns
  std::vector<double> centred_, residuals_, log_propensities_;
};

}  // namespace

std::unique_ptr<DenseValue> gaussian_value(std::shared_ptr<const DenseRows> rows, const RealActions& actions,
                                           const GaussianSettings& settings) {
  return std::make_unique<GaussianValue>(std::move(rows), actions, settings);
}

}  // namespace o2
