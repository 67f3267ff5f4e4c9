#include "formats/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace o2 {

bool is_utf8(const char* p, const char* end) {
  const auto byte = [](const char* at) { return static_cast<uint8_t>(*at); };
  while (p < end) {
    for (uint64_t words[4]; end - p >= 32; p += 32) {  // ASCII
      std::memcpy(words, p, sizeof words);
      if ((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080) break;
    }
    for (const char* const stop = end - p > 32 ? p + 32 : end; p < stop;) {
      const uint8_t first = byte(p++);
      if (first < 0x80) continue;
      const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
      if (first < 0xC2 || first > 0xF4 || end - p < more) return false;
      const uint8_t second = byte(p);  // excludes longer forms than needed, halves of surrogate pairs, and beyond U+10FFFF
      const uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80, high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
      if (second < low || second > high) return false;
      for (int i = 1; i < more; i++)
        if ((byte(p + i) & 0xC0) != 0x80) return false;
      p += more;
    }
  }
  return true;
}

}  // namespace o2
