#include "core/features.hpp"
#include "core/wide.hpp"

namespace o2 {
namespace {

template <class T>
O2_IN T clipped(T x, T clip) {  // NaN stays NaN
  x = -clip > x ? -clip : x;
  return clip < x ? clip : x;
}

// out [R, used] = rows · D + offset, each sum in the order of i. D [d, L]: directions, transposed; offset follows them
template <int R, int L, class T, class Sum>
O2_IN void project_block(const T* rows, int64_t d, const Sum* D, T* out, int64_t stride, int64_t used) {
  using Some = typename Wide<Sum, L>::Type;
  Some sums[R], column;
  for (int r = 0; r < R; r++) memcpy(&sums[r], D + d * L, sizeof(Some));
  for (int64_t i = 0; i < d; i++) {
    memcpy(&column, D + i * L, sizeof(Some));
    for (int r = 0; r < R; r++) sums[r] += column * static_cast<Sum>(rows[r * d + i]);
  }
  Sum made[R * L];
  memcpy(made, sums, sizeof(made));
  for (int r = 0; r < R; r++)
    for (int l = 0; l < used; l++) out[r * stride + l] = static_cast<T>(made[r * L + l]);
}

template <int R, int L, class T, class W, class Sum>
O2_IN void project_lanes(const T* rows, int64_t n, int64_t d, const W* directions, const double* offset, int64_t used, T* out,
                         int64_t stride, Sum* room) {
  for (int64_t l = 0; l < L; l++) {
    for (int64_t i = 0; i < d; i++) room[i * L + l] = l < used ? static_cast<Sum>(directions[l * d + i]) : Sum(0);
    room[d * L + l] = offset && l < used ? static_cast<Sum>(offset[l]) : Sum(0);
  }
  int64_t r = 0;
  for (; r + R <= n; r += R) project_block<R, L>(rows + r * d, d, room, out + r * stride, stride, used);
  for (; r < n; r++) project_block<1, L>(rows + r * d, d, room, out + r * stride, stride, used);
}

// out [m] = directionsᵀ · x, each sum in the order of i. directions [d, m]
template <class T>
O2_IN void directed(const T* x, int64_t d, const float* directions, int64_t m, float* out) {
  for (int64_t j = 0; j < m; j++) out[j] = 0;
  for (int64_t i = 0; i < d; i++) {
    const auto own = static_cast<float>(x[i]);
    for (int64_t j = 0; j < m; j++) out[j] += own * directions[i * m + j];
  }
}

// out [d] = (x - shift) scale, clipped
template <class T>
O2_IN void standardise_row(const T* x, int64_t d, const float* shift, const float* scale, T clip, T* out) {
  for (int64_t i = 0; i < d; i++) out[i] = clipped<T>((x[i] - shift[i]) * scale[i], clip);
}

// out [m (m + 1) / 2]
template <class T, class Z>
O2_IN void products_of(const Z* z, int64_t m, const float* shift, const float* scale, T* out) {
  for (int64_t i = 0; i < m; i++) {
    const Z first = z[i];
    const Z* second = z + i;
    const int64_t left = m - i;
    for (int64_t j = 0; j < left; j++) out[j] = (first * second[j] - shift[j]) * scale[j];
    out += left, shift += left, scale += left;
  }
}

}  // namespace

namespace kernels {

template <int LEVEL, class T>
void feature_rows(const FeaturePlan& plan, const T* rows, int64_t n, T* out, float* room) {
  const int64_t d = plan.d, m = plan.m, first = plan.intercept ? 1 : 0, width = first + d + plan.products;
  for (int64_t r = 0; r < n; r++) {
    T *row = out + r * width, *own = row + first;
    if (first) row[0] = 1;
    standardise_row<T>(rows + r * d, d, plan.shift, plan.scale, plan.clip, own);
    if (!plan.products) continue;
    if (!m) {
      products_of(own, d, plan.product_shift, plan.product_scale, own + d);
      continue;
    }
    directed(own, d, plan.directions, m, room);
    products_of(room, m, plan.product_shift, plan.product_scale, own + d);
  }
}

template <int LEVEL, class T, class W, class Sum>
void project(const T* rows, int64_t n, int64_t d, const W* directions, const double* offset, int64_t m, T* out, Sum* room) {
  constexpr int MOST = 64 / sizeof(Sum);
  for (int64_t j = 0; j < m; j += MOST) {
    const int64_t used = m - j < MOST ? m - j : MOST;
    const W* own = directions + j * d;
    const double* start = offset ? offset + j : nullptr;
    if (used == 1) project_lanes<8, 1>(rows, n, d, own, start, used, out + j, m, room);
    else if (used <= 4) project_lanes<4, 4>(rows, n, d, own, start, used, out + j, m, room);
    else project_lanes<4, MOST>(rows, n, d, own, start, used, out + j, m, room);
  }
}

template <int LEVEL>
void user_item_rows(const UserItemPlan& plan, const float* rows, int64_t n, float* out, float* room) {
  const int64_t d = plan.d_user + plan.d_item, a = plan.a ? plan.a : plan.d_user, b = plan.b ? plan.b : plan.d_item;
  const int64_t width = plan.head + d + a * b, last = plan.head - 1;
  for (int64_t r = 0; r < n; r++) {
    const float* x = rows + r * (1 + d);
    float *row = out + r * width, *user = row + plan.head, *item = user + plan.d_user, *made = user + d;
    row[0] = 1;
    for (int64_t i = 1; i < plan.head; i++) row[i] = 0;
    if (x[0] >= 1) row[x[0] < static_cast<float>(last) ? static_cast<int64_t>(x[0]) : last] = 1;
    standardise_row(x + 1, d, plan.shift, plan.scale, plan.clip, user);
    const float *u = user, *v = item;
    if (plan.a) directed(user, plan.d_user, plan.users, a, room), u = room;
    if (plan.b) directed(item, plan.d_item, plan.items, b, room + plan.a), v = room + plan.a;
    for (int64_t i = 0; i < a; i++)
      for (int64_t j = 0; j < b; j++) made[i * b + j] = u[i] * v[j];
  }
}

template <int LEVEL, class T>
void absorb(const T* rows, int64_t n, int64_t d, ColumnMoments& moments) {
  double *__restrict mean = moments.mean, *__restrict squares = moments.squares;
  bool* __restrict binary = moments.binary;
  bool some = true;
  for (int64_t r = 0; r < n; r++) {
    const T* __restrict x = rows + r * d;
    moments.count += 1;
    const double share = 1 / moments.count;
    for (int64_t i = 0; i < d; i++) {  // `welford`, as arrays
      const double given = x[i], off = given - mean[i], moved = mean[i] + off * share;
      squares[i] += off * (given - moved);
      mean[i] = moved;
    }
    if (!some) continue;
    some = false;
    for (int64_t i = 0; i < d; i++) binary[i] = binary[i] && (x[i] == 0 || x[i] == 1), some = some || binary[i];
  }
}

template void feature_rows<O2_LEVEL>(const FeaturePlan&, const float*, int64_t, float*, float*);
template void feature_rows<O2_LEVEL>(const FeaturePlan&, const double*, int64_t, double*, float*);
template void project<O2_LEVEL>(const float*, int64_t, int64_t, const float*, const double*, int64_t, float*, float*);
template void project<O2_LEVEL>(const float*, int64_t, int64_t, const double*, const double*, int64_t, float*, double*);
template void project<O2_LEVEL>(const double*, int64_t, int64_t, const float*, const double*, int64_t, double*, double*);
template void project<O2_LEVEL>(const double*, int64_t, int64_t, const double*, const double*, int64_t, double*, double*);
template void user_item_rows<O2_LEVEL>(const UserItemPlan&, const float*, int64_t, float*, float*);
template void absorb<O2_LEVEL>(const float*, int64_t, int64_t, ColumnMoments&);
template void absorb<O2_LEVEL>(const double*, int64_t, int64_t, ColumnMoments&);

}  // namespace kernels
}  // namespace o2
