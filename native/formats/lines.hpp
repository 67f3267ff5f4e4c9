// The number of newlines of a text.
#pragma once
#include <algorithm>
#include <cstdint>

namespace o2 {

// Counted in bytes, side by side, which vectorises: several times as fast as std::count.
inline int64_t newlines(const char* p, const char* end) {
  constexpr int64_t LANES = 64, MOST = 255;
  int64_t total = 0;
  while (end - p >= LANES) {
    uint8_t counts[LANES] = {};
    for (int64_t left = std::min(MOST, (end - p) / LANES); left > 0; left--, p += LANES)
      for (int64_t l = 0; l < LANES; l++) counts[l] = static_cast<uint8_t>(counts[l] + (p[l] == '\n'));
    for (const uint8_t count : counts) total += count;
  }
  return total + std::count(p, end, '\n');
}

}  // namespace o2
