// Vectors of L numbers that every compiler splits into the registers that it has. Not merged between levels.
#pragma once

namespace o2 {
namespace {

template <class T, int L>
struct Wide {
  typedef T Type __attribute__((vector_size(L * sizeof(T))));
};
template <class T>
struct Wide<T, 1> {
  typedef T Type;
};

}  // namespace
}  // namespace o2
