// Arrays of hashed features, [.., 2], as structures of their two columns.
#pragma once
#include <span>
#include <stdexcept>

#include "core/expanding.hpp"
#include "python/arrays.hpp"

namespace o2 {

inline const Feature* features_of(Array<const uint32_t, 2> array) {
  if (array.shape[1] != 2) throw std::invalid_argument("features: expected two columns");
  return reinterpret_cast<const Feature*>(array.data);
}

inline std::span<const Pair> pairs_of(Array<const int64_t, 2> array, int64_t spaces) {
  if (array.shape[1] != 2) throw std::invalid_argument("pairs: expected two columns");
  const std::span pairs(reinterpret_cast<const Pair*>(array.data), array.shape[0]);
  for (const auto [a, b] : pairs)
    if (a < 0 || a >= spaces || b < 0 || b >= spaces) throw std::invalid_argument("pairs: found an unknown namespace");
  return pairs;
}

inline const Segment* segments_of(Array<const int64_t, 2> array) {
  if (array.shape[1] != 2) throw std::invalid_argument("segments: expected two columns");
  return reinterpret_cast<const Segment*>(array.data);
}

inline void check_within(const Segment* segments, int64_t count, int64_t n) {
  for (int64_t i = 0; i < count; i++)
    if (segments[i].first < 0 || segments[i].first > segments[i].last || segments[i].last > n)
      throw std::invalid_argument("segments: found one beyond the features");
}

}  // namespace o2
