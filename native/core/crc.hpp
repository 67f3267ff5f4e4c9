// CRC-32 (polynomial 0xEDB88320, reflected), continued from a state: a name is hashed as it is read, and never built.
//
//     name_hash("user.age") = mixed(crc(crc(NO_NAME, "user"), ".age"))
//
// A state is the CRC before its final complement; `zlib.crc32(text) ^ 0xFFFFFFFF` in Python.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace o2 {

inline constexpr uint32_t NO_NAME = 0xFFFFFFFF;  // the state of an empty name

namespace crc_detail {

// tables[j][b]: what byte b, followed by j zero bytes, adds to the state
constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t state = b;
    for (int bit = 0; bit < 8; bit++) state = state & 1 ? (state >> 1) ^ 0xEDB88320u : state >> 1;
    tables[0][b] = state;
  }
  for (int j = 1; j < 8; j++)
    for (uint32_t b = 0; b < 256; b++) tables[j][b] = (tables[j - 1][b] >> 8) ^ tables[0][tables[j - 1][b] & 255];
  return tables;
}

inline constexpr auto tables = make_tables();

}  // namespace crc_detail

// The state after one more byte.
inline uint32_t crc(uint32_t state, uint8_t byte) { return crc_detail::tables[0][(state ^ byte) & 255] ^ (state >> 8); }

// The state after eight bytes, the first one lowest.
inline uint32_t crc_of_word(uint32_t state, uint64_t word) {
  const auto& t = crc_detail::tables;
  const uint64_t z = word ^ state;
  return t[7][z & 255] ^ t[6][(z >> 8) & 255] ^ t[5][(z >> 16) & 255] ^ t[4][(z >> 24) & 255] ^ t[3][(z >> 32) & 255] ^
         t[2][(z >> 40) & 255] ^ t[1][(z >> 48) & 255] ^ t[0][z >> 56];
}

// The state after the first `size` < 8 bytes of a word, without a branch: in front of them come zeros, which leave 0 as it
// is, and what the bytes do not reach of the state moves down.
inline uint32_t crc_of_part(uint32_t state, uint64_t word, int size) {
  const uint64_t own = (word ^ state) << (56 - 8 * size) << 8;
  return crc_of_word(0, own) ^ static_cast<uint32_t>(uint64_t{state} >> (8 * size));
}

// The state after these bytes.
inline uint32_t crc(uint32_t state, std::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  if constexpr (std::endian::native == std::endian::little)
    for (; end - p >= 8; p += 8) {
      uint64_t word;
      std::memcpy(&word, p, sizeof word);
      state = crc_of_word(state, word);
    }
  for (; p < end; p++) state = crc(state, static_cast<uint8_t>(*p));
  return state;
}

// `name_hash` from the state after a name: its bits, mixed (the last steps of MurmurHash3).
constexpr uint32_t mixed(uint32_t state) {
  uint32_t h = ~state;
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}

}  // namespace o2
