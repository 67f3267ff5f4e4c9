// Eight doubles at a time, in vectors of the width of the level (`O2_LEVEL`): the compiler has no good code for wider ones.
// The same arithmetic at every level, and sums of lanes in one order. For `.inl` files of `core/level.inl`.
#pragma once
#include <cstdint>
#include <cstring>

namespace o2 {
namespace {  // every level has functions of its own: the linker must not merge them

constexpr int64_t EIGHT = 8;

struct Eight {
  static constexpr int WIDTH = O2_LEVEL == 3 ? 8 : O2_LEVEL == 2 ? 4 : 2, PARTS = 8 / WIDTH;
  typedef double Part __attribute__((vector_size(8 * WIDTH)));
  Part parts[PARTS];
};

template <class Combine>
O2_IN Eight by_parts(const Eight& a, const Eight& b, Combine combine) {
  Eight out;
  for (int i = 0; i < Eight::PARTS; i++) out.parts[i] = combine(a.parts[i], b.parts[i]);
  return out;
}

O2_IN Eight eight_of(double x) {
  Eight out;
  for (auto& part : out.parts) part = Eight::Part{} + x;
  return out;
}
O2_IN Eight eight_at(const double* p) {
  Eight out;
  for (int i = 0; i < Eight::PARTS; i++) memcpy(&out.parts[i], p + i * Eight::WIDTH, sizeof(Eight::Part));
  return out;
}
O2_IN Eight eight_of_floats(const float* p) {
  typedef float Half __attribute__((vector_size(4 * Eight::WIDTH)));
  Eight out;
  for (int i = 0; i < Eight::PARTS; i++) {
    Half x;
    memcpy(&x, p + i * Eight::WIDTH, sizeof(x));
    out.parts[i] = __builtin_convertvector(x, Eight::Part);
  }
  return out;
}
O2_IN Eight operator+(const Eight& a, const Eight& b) { return by_parts(a, b, [](auto x, auto y) { return x + y; }); }
O2_IN Eight operator-(const Eight& a, const Eight& b) { return by_parts(a, b, [](auto x, auto y) { return x - y; }); }
O2_IN Eight operator*(const Eight& a, const Eight& b) { return by_parts(a, b, [](auto x, auto y) { return x * y; }); }
O2_IN Eight least(const Eight& a, const Eight& b) { return by_parts(a, b, [](auto x, auto y) { return x < y ? x : y; }); }
O2_IN Eight most(const Eight& a, const Eight& b) { return by_parts(a, b, [](auto x, auto y) { return x > y ? x : y; }); }
O2_IN void to_lanes(const Eight& a, double* p) {
  for (int i = 0; i < Eight::PARTS; i++) memcpy(p + i * Eight::WIDTH, &a.parts[i], sizeof(Eight::Part));
}
O2_IN double sum(const Eight& a) {
  double x[EIGHT];
  to_lanes(a, x);
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

// Σ a_i b_i: eight sums side by side, then the last products
static inline double dot8(const double* a, const double* b, int64_t n) {
  Eight sums = eight_of(0);
  int64_t i = 0;
  for (; i + EIGHT <= n; i += EIGHT) sums = sums + eight_at(a + i) * eight_at(b + i);
  double total = sum(sums);
  for (; i < n; i++) total += a[i] * b[i];
  return total;
}

// n, rounded up to whole vectors
static inline int64_t in_eights(int64_t n) { return (n + 7) / 8 * 8; }

}  // namespace
}  // namespace o2
