#include "core/action_sets.hpp"

#include <algorithm>
#include <vector>

#include "core/actionwise.hpp"
#include "core/double_rows.hpp"
#include "core/lanes.hpp"
#include "core/threads.hpp"

namespace o2 {
namespace {

constexpr int64_t AT_ONCE = 1024;  // sets whose sums are one term

class ActionSetsValue final : public DenseValue {
 public:
  ActionSetsValue(std::shared_ptr<const DenseRows> rows, const ActionSetsLog& log, const ActionSetsSettings& settings)
      : rows_(std::move(rows)), settings_(settings), width_(rows_->plan().width()), n_(log.n),
        offsets_(log.offsets, log.offsets + log.n + 1), actions_(log.actions, log.actions + log.n),
        residuals_(log.residuals, log.residuals + log.n), inverse_(log.inverse, log.inverse + log.n) {}

  int64_t n_params() const override { return width_; }
  int64_t parts() const override { return 2; }

  Sums sums(const double* params, int threads) const override {
    const int count = 1 + rows_->plan().d + rows_->plan().products();
    const int64_t n_panels = rows_->panels(), terms = (n_ + AT_ONCE - 1) / AT_ONCE;
    const auto places = static_cast<size_t>(rows_->rows() + LANES);
    std::vector<double> W(rows_->features()), scores(places), of_risk(places), of_variance(places);
    rows_->pack(params, W.data());
    in_parallel(n_panels, threads, [&](int64_t panel) {
      Lined room(laid_of(rows_->factors()));
      double_rows().scores(rows_->panel(panel), rows_->products(), count, W.data(), scores.data() + rows_->start_of(panel),
                           room.data());
    });
    std::vector<SetSums> found(terms);
    in_parallel(terms, threads, [&](int64_t term) {
      const int64_t start = term * AT_ONCE, some = std::min(AT_ONCE, n_ - start), first = offsets_[start];
      const SetsLog own = {offsets_.data() + start, actions_.data() + start, residuals_.data() + start, inverse_.data() + start,
                           some, settings_.alpha};
      found[term] = actionwise_partial(own, scores.data() + first, of_risk.data() + first, of_variance.data() + first);
    });
    std::vector<std::vector<double>> gradients(n_panels);
    in_parallel(n_panels, threads, [&](int64_t panel) {
      Lined room(laid_of(rows_->factors()));
      std::vector<double> own(2 * count);
      const int64_t start = rows_->start_of(panel);
      double_rows().pull(rows_->panel(panel), rows_->products(), count, of_risk.data() + start, of_variance.data() + start,
                         own.data(), room.data());
      gradients[panel].assign(2 * width_, 0.0);
      for (int part = 0; part < 2; part++) rows_->unpack(own.data() + part * count, gradients[panel].data() + part * width_);
    });
    Sums total;
    total.gradients.assign(2 * width_, 0.0);
    for (const SetSums& one : found) total.values[0] += one.risk, total.values[1] += one.variance;
    for (const auto& one : gradients)
      for (int64_t i = 0; i < 2 * width_; i++) total.gradients[i] += one[i];
    return total;
  }

  double value(const double* params, double* gradient, int threads) const override {
    return pessimistic_combine(sums(params, threads), params, width_, settings_.size, settings_.l2, settings_.penalty, gradient);
  }

 private:
  std::shared_ptr<const DenseRows> rows_;
  ActionSetsSettings settings_;
  int64_t width_, n_;
  std::vector<int64_t> offsets_, actions_;
  std::vector<double> residuals_, inverse_;
};

}  // namespace

std::unique_ptr<DenseValue> action_sets_value(std::shared_ptr<const DenseRows> rows, const ActionSetsLog& log,
                                              const ActionSetsSettings& settings) {
  return std::make_unique<ActionSetsValue>(std::move(rows), log, settings);
}

}  // namespace o2
