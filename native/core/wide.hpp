// Vectors of L numbers that every compiler splits into the registers that it has. Not merged between levels.
#pragma once
#include <cstdint>

#include "core/simd.hpp"

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

// Calls part<L>(k) for actions k … k + L - 1, until all K are done.
template <class Part>
O2_IN void by_actions(int64_t K, const Part& part) {
  int64_t k = 0;
  for (; k + 8 <= K; k += 8) part.template operator()<8>(k);
  if (k + 4 <= K) part.template operator()<4>(k), k += 4;
  if (k + 2 <= K) part.template operator()<2>(k), k += 2;
  if (k < K) part.template operator()<1>(k);
}

}  // namespace
}  // namespace o2
