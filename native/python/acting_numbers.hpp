// `acting_numbers` from Python, checked.
#pragma once
#include <stdexcept>

#include "core/acting.hpp"
#include "python/arrays.hpp"

namespace o2 {

inline Acting acting_of(Array<const double> numbers, int64_t members, int64_t K) {
  const auto fits = [&](double n) { return n == 0 || n == static_cast<double>(K); };
  const int64_t head = numbers.size() > 0 && numbers[0] == 0 ? 4 + members * (1 + PREDICTING) : 4 + members;
  if (numbers.size() < head || !fits(numbers[2]) || !fits(numbers[3]) ||
      static_cast<double>(numbers.size()) != static_cast<double>(head) + numbers[2] + numbers[3])
    throw std::invalid_argument("acting: expected a bonus and a share for each action, or none");
  return {numbers.data, members};
}

}  // namespace o2
