// Sixteen rows at a time.
#pragma once
#include <new>
#include <vector>

#include "core/dense_kernels.hpp"

namespace o2 {

inline int up_to_lanes(int n) { return (n + LANES - 1) / LANES * LANES; }

// Allocates from a cache line's boundary on: sixteen floats then lie in one line.
template <class T>
struct OnLines {
  using value_type = T;
  static constexpr std::align_val_t LINE{64};

  OnLines() = default;
  template <class U>
  OnLines(const OnLines<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), LINE)); }
  void deallocate(T* at, size_t) { ::operator delete(at, LINE); }
  template <class U>
  bool operator==(const OnLines<U>&) const { return true; }
};
using Lined = std::vector<float, OnLines<float>>;

}  // namespace o2
