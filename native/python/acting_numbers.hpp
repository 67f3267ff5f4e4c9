// `acting_numbers` from Python, checked.
#pragma once
#include <stdexcept>

#include "core/acting.hpp"
#include "python/arrays.hpp"

namespace o2 {

inline Acting acting_of(Array<const double> numbers, int64_t members, int64_t K) {
  const auto fits = [&](double n) { return n == 0 || n == static_cast<double>(K); };
  if (numbers.size() < 4 + members || !fits(numbers[2]) || !fits(numbers[3]) ||
      static_cast<double>(numbers.size()) != 4 + static_cast<double>(members) + numbers[2] + numbers[3])
    throw std::invalid_argument("acting: expected a bonus and a share for each action, or none");
  return {numbers.data, members};
}

}  // namespace o2
