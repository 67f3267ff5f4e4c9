#include <cmath>

#include "core/adam.hpp"

namespace o2 {
namespace {

template <class T>
void adam(T* __restrict params, const T* __restrict gradient, T* __restrict first, T* __restrict second, int64_t n, double rate,
          double correction) {
  const T by = static_cast<T>(rate), corrected = static_cast<T>(correction), floor = static_cast<T>(ADAM_FLOOR);
  const T decay1 = static_cast<T>(ADAM_FIRST), decay2 = static_cast<T>(ADAM_SECOND);
  const T rest1 = static_cast<T>(1 - ADAM_FIRST), rest2 = static_cast<T>(1 - ADAM_SECOND);
  for (int64_t i = 0; i < n; i++) {
    const T g = gradient[i];
    first[i] = decay1 * first[i] + rest1 * g;
    second[i] = decay2 * second[i] + rest2 * g * g;
    params[i] -= by * first[i] / (std::sqrt(second[i] * corrected) + floor);
  }
}

}  // namespace
}  // namespace o2
