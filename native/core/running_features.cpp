#include "core/running_features.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/features.hpp"

namespace o2 {
namespace {

constexpr int64_t STRETCH = 1 << 14;  // rows at a time

}  // namespace

void Moments::absorb(const float* rows, int64_t n) {
  ColumnMoments moments{count, mean.data(), squares.data(), binary.data(), shift.data(), scale.data()};
  o2::absorb(rows, n, static_cast<int64_t>(mean.size()), moments);
  count = moments.count;
}

void RunningFeatures::observe(const float* X, int64_t n) {
  if (static_cast<double>(n) < growth * static_cast<double>(rows)) return;
  const auto p = static_cast<int64_t>(products.mean.size());
  for (int64_t from = rows; from < n; from += STRETCH) {
    const int64_t some = std::min(STRETCH, n - from);
    const float* x = X + from * d;
    if (standardised) inputs.absorb(x, some);
    if (p == 0) continue;
    const float* factors = x;
    if (standardised) {
      made_.resize(some * d);
      const FeaturePlan plan{d, 0, 0, inputs.shift.data(), inputs.scale.data(), clip, nullptr, nullptr, nullptr, false};
      feature_rows(plan, x, some, made_.data());
      factors = made_.data();
    }
    int64_t m = d;
    if (!directions.empty()) {
      m = static_cast<int64_t>(directions.size()) / d;
      factors_.resize(some * m);
      project<float, float>(factors, some, d, directions.data(), nullptr, m, factors_.data());
      factors = factors_.data();
    }
    const std::vector<float> none(std::max(m, p), 0.0f), ones(std::max(m, p), 1.0f);
    widened_.resize(some * (m + p));
    const FeaturePlan plan{m, 0, p, none.data(), ones.data(), std::numeric_limits<float>::infinity(), nullptr, none.data(), ones.data(), false};
    feature_rows(plan, factors, some, widened_.data());
    made_.resize(some * p);
    for (int64_t r = 0; r < some; r++) std::copy_n(widened_.data() + r * (m + p) + m, p, made_.data() + r * p);
    products.absorb(made_.data(), some);
  }
  rows = std::max(rows, n);
}

void transform(const Plan& plan, const float* X, int64_t n, float* out) {
  const int64_t d = plan.d, m = plan.products() ? plan.directions_of : 0;
  std::vector<float> turned(d * m);  // [d, m]
  for (int64_t i = 0; i < d; i++)
    for (int64_t j = 0; j < m; j++) turned[i * m + j] = plan.directions[j * d + i];
  const FeaturePlan own{d, m, plan.products(), plan.shift.data(), plan.scale.data(), plan.clip, turned.data(), plan.product_shift.data(),
                        plan.product_scale.data(), plan.intercept != 0};
  feature_rows(own, X, n, out);
}

Plan RunningFeatures::plan() const {
  Plan plan;
  plan.d = d, plan.intercept = intercept;
  plan.clip = standardised ? clip : std::numeric_limits<float>::infinity();
  plan.shift = standardised ? inputs.shift : std::vector<float>(d, 0.0f);
  plan.scale = standardised ? inputs.scale : std::vector<float>(d, 1.0f);
  plan.directions = directions, plan.directions_of = static_cast<int>(directions.size()) / d;
  const auto p = products.scale.size();
  plan.product_shift = products.shift, plan.product_scale = products.scale;
  // together, products have at most the norm of the inputs
  const auto smaller = static_cast<float>(std::min(1.0, std::sqrt(static_cast<double>(d) / static_cast<double>(std::max<size_t>(p, 1)))));
  for (float& scale : plan.product_scale) scale *= smaller;
  return plan;
}

}  // namespace o2
