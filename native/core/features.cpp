#include "core/features.hpp"

#include <type_traits>
#include <vector>

#include "core/levels.hpp"
#include "core/moments.hpp"

namespace o2 {

template <class T>
void feature_rows(const FeaturePlan& plan, const T* rows, int64_t n, T* out) {
  std::vector<float> room(plan.m);
  at_level([&](auto L) { kernels::feature_rows<L>(plan, rows, n, out, room.data()); });
}

template <class T, class W>
void project(const T* rows, int64_t n, int64_t d, const W* directions, const double* offset, int64_t m, T* out) {
  std::vector<std::common_type_t<T, W>> room(16 * (d + 1));
  at_level([&](auto L) { kernels::project<L>(rows, n, d, directions, offset, m, out, room.data()); });
}

void user_item_rows(const UserItemPlan& plan, const float* rows, int64_t n, float* out) {
  std::vector<float> room(plan.a + plan.b);
  at_level([&](auto L) { kernels::user_item_rows<L>(plan, rows, n, out, room.data()); });
}

template <class T>
void absorb(const T* rows, int64_t n, int64_t d, ColumnMoments& moments) {
  at_level([&](auto L) { kernels::absorb<L>(rows, n, d, moments); });
  for (int64_t i = 0; i < d; i++) {
    const bool as_is = moments.binary[i] || moments.count == 0;
    moments.shift[i] = as_is ? 0.0f : static_cast<float>(moments.mean[i]);
    moments.scale[i] = as_is ? 1.0f : static_cast<float>(inverse_deviation(moments.count, moments.mean[i], moments.squares[i]));
  }
}

template void feature_rows(const FeaturePlan&, const float*, int64_t, float*);
template void feature_rows(const FeaturePlan&, const double*, int64_t, double*);
template void project(const float*, int64_t, int64_t, const float*, const double*, int64_t, float*);
template void project(const float*, int64_t, int64_t, const double*, const double*, int64_t, float*);
template void project(const double*, int64_t, int64_t, const float*, const double*, int64_t, double*);
template void project(const double*, int64_t, int64_t, const double*, const double*, int64_t, double*);
template void absorb(const float*, int64_t, int64_t, ColumnMoments&);
template void absorb(const double*, int64_t, int64_t, ColumnMoments&);

}  // namespace o2
