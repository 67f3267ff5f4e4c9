// Built-in features, row by row: sums keep their order, so a row's features are the same alone and in a batch.
// Matrices are row-major. See `o2pl.features`.
#pragma once
#include <cstdint>

namespace o2 {

// A constant 1, (x - shift) scale clipped to [-clip, clip], and the products z_i z_j, i <= j, shifted and scaled, where z
// are m directions of these features, or the d features themselves if m = 0.
struct FeaturePlan {
  int64_t d, m, products;  // products = 0: none
  const float *shift, *scale;
  float clip;
  const float* directions;  // [d, m]
  const float *product_shift, *product_scale;
  bool intercept;
};

// out [n, intercept + d + products]; rows [n, d]
template <class T>
void feature_rows(const FeaturePlan& plan, const T* rows, int64_t n, T* out);

// out [n, m] = rows · directionsᵀ + offset, in the wider type of rows and directions. rows [n, d],
// directions [m, d], offset [m] or null: 0
template <class T, class W>
void project(const T* rows, int64_t n, int64_t d, const W* directions, const double* offset, int64_t m, T* out);

// Users and items: a constant, indicators of the list slot, (u, x) standardised, and the products of `users` directions
// of u and `items` directions of x (of u and x themselves if there are none). See `o2pl.features.user_items`.
struct UserItemPlan {
  int64_t d_user, d_item, head;  // head: the constant and the indicators of slots 1, 2, …; later slots share the last
  const float *shift, *scale;    // [d_user + d_item]
  float clip;
  const float *users, *items;    // [d_user, a], [d_item, b]; a = 0 or b = 0: u or x themselves
  int64_t a, b;
};

// out [n, head + d_user + d_item + a b]; rows [n, 1 + d_user + d_item]: slot, user, item
void user_item_rows(const UserItemPlan& plan, const float* rows, int64_t n, float* out);

// Running moments of columns, and how they are standardised. [d]
struct ColumnMoments {
  double count;
  double *mean, *squares;  // squares: Σ (x - mean)²
  bool* binary;            // only 0 and 1 so far: unchanged
  float *shift, *scale;    // a constant column gets scale 0
};

// Welford's update, row by row: the result does not depend on batching. rows [n, d]
template <class T>
void absorb(const T* rows, int64_t n, int64_t d, ColumnMoments& moments);

namespace kernels {  // once per level of instructions; `room` is for intermediate results

template <int LEVEL, class T>
void feature_rows(const FeaturePlan& plan, const T* rows, int64_t n, T* out, float* room);  // [m]
template <int LEVEL, class T, class W, class Sum>  // room [16 (d + 1)]
void project(const T* rows, int64_t n, int64_t d, const W* directions, const double* offset, int64_t m, T* out, Sum* room);
template <int LEVEL>
void user_item_rows(const UserItemPlan& plan, const float* rows, int64_t n, float* out, float* room);  // [a + b]
template <int LEVEL, class T>
void absorb(const T* rows, int64_t n, int64_t d, ColumnMoments& moments);

}  // namespace kernels
}  // namespace o2
