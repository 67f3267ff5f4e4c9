// A row's hashed features and the products of its namespaces, as indices and values.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

namespace o2 {

struct Feature {
  uint32_t hash;  // of the name, all 32 bits
  float value;
};

// A stretch of features: first to before last.
struct Segment {
  int64_t first, last;
  int64_t size() const { return last - first; }
};

// Two namespaces, by index, whose features are multiplied.
struct Pair {
  int64_t a, b;
};

// What makes an index and a value of a feature.
struct Encoding {
  uint32_t mask;  // 2^bits - 1
  bool with_sign;

  int32_t index(uint32_t hash) const { return static_cast<int32_t>(hash & mask); }
  // The sign is the first bit, which no index uses.
  float value(uint32_t hash, float value) const { return with_sign && hash >> 31 ? -value : value; }
};

// The hash of the product of two features; the order matters.
inline uint32_t crossed_hash(uint32_t first, uint32_t second) {
  uint32_t h = first * 0x9E3779B1u ^ second;
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}

// The value of the product of two features, within the range of float32.
inline float crossed_value(float first, float second) {
  constexpr double LARGEST = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(static_cast<double>(first) * static_cast<double>(second), -LARGEST, LARGEST));
}

inline Feature crossed(Feature first, Feature second) {
  return {crossed_hash(first.hash, second.hash), crossed_value(first.value, second.value)};
}

// The number of entries of a row of n features with all products.
inline int64_t expanded_size(int64_t n, const Segment* segments, std::span<const Pair> pairs) {
  for (const auto [a, b] : pairs) {
    const int64_t size = segments[a].size();
    n += a == b ? size * (size - 1) / 2 : size * segments[b].size();
  }
  return n;
}

// Call put(feature) for each of n features, and for the products of each pair of namespaces.
template <class Put>
void expand(const Feature* features, int64_t n, const Segment* segments, std::span<const Pair> pairs, Put put) {
  for (int64_t i = 0; i < n; i++) put(features[i]);
  for (const auto [a, b] : pairs)
    for (int64_t i = segments[a].first; i < segments[a].last; i++)
      for (int64_t j = a == b ? i + 1 : segments[b].first; j < segments[b].last; j++)  // within one, each pair once
        put(crossed(features[i], features[j]));
}

// Features in two columns.
struct Features {
  const uint32_t* hashes;
  const float* values;
  int64_t n;
  Feature operator[](int64_t i) const { return {hashes[i], values[i]}; }
  Features part(Segment own) const { return {hashes + own.first, values + own.first, own.size()}; }
};

// Call put(feature) for the features of an action, then for those that all actions share, then for the products of both.
template <class Put>
void expand_action(Features own, Features shared, Put put) {
  for (int64_t i = 0; i < own.n; i++) put(own[i]);
  for (int64_t i = 0; i < shared.n; i++) put(shared[i]);
  for (int64_t i = 0; i < shared.n; i++)
    for (int64_t j = 0; j < own.n; j++) put(crossed(shared[i], own[j]));
}

// Where a row's entries are written.
struct Entries {
  int32_t* indices;
  float* values;
  Encoding encoding;

  void operator()(Feature feature) {
    *indices++ = encoding.index(feature.hash);
    *values++ = encoding.value(feature.hash, feature.value);
  }
};

}  // namespace o2
