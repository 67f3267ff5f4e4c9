// The syntax of JSON, on text from p to `end`: each function returns the position after what it reads, or null if that is
// malformed or unusual (more than `DEEPEST` nested values, numbers beyond doubles). No byte at or after `end` is read.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace o2::json {

inline constexpr int DEEPEST = 64;  // nested objects and lists

inline const char* after_space(const char* p, const char* end) {
  while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
  return p;
}

// -- eight bytes at a time

inline constexpr bool WORDS = std::endian::native == std::endian::little;  // first byte: lowest bits
inline constexpr uint64_t ONES = 0x0101010101010101, TOPS = 0x8080808080808080;

inline uint64_t word_at(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// The lowest bit set is the top bit of the first byte of a string that is a quote, a backslash or below 32; 0: none is.
inline uint64_t special(uint64_t word) {
  const uint64_t quote = word ^ (ONES * '"'), slash = word ^ (ONES * '\\');
  return (((quote - ONES) & ~quote) | ((slash - ONES) & ~slash) | ((word - ONES * 32) & ~word)) & TOPS;
}

// The first byte from p on that is a quote, a backslash or below 32; `end` if there is none.
inline const char* to_special(const char* p, const char* end) {
  if constexpr (WORDS)
    for (; end - p >= 8; p += 8)
      if (const uint64_t found = special(word_at(p))) return p + std::countr_zero(found) / 8;
  while (p < end && *p != '"' && *p != '\\' && static_cast<uint8_t>(*p) >= 32) p++;
  return p;
}

// -- strings, from their opening quote

const char* after_string(const char* p, const char* end);

// The same; a string with escapes is unusual.
inline const char* after_plain_string(const char* p, const char* end) {
  p = to_special(p + 1, end);
  return p < end && *p == '"' ? p + 1 : nullptr;
}

// The state of `crc` after `before` (0: nothing) and the characters of a string, in UTF-8; half of a surrogate pair is unusual.
const char* hashed_string(const char* p, const char* end, char before, uint32_t& state);

// The characters of a string that `hashed_string` reads, between its quotes, in UTF-8.
std::string unescaped(std::string_view text);

// -- other values

// A number, correctly rounded.
const char* number(const char* p, const char* end, double& value);

// true, false or null.
inline const char* after_word(const char* p, const char* end) {
  const auto is = [&](const char* word, int64_t size) { return end - p >= size && !std::memcmp(p, word, size); };
  return is("true", 4) || is("null", 4) ? p + 4 : is("false", 5) ? p + 5 : nullptr;
}

// Any value within `depth` others.
const char* after_value(const char* p, const char* end, int depth = 0);

// A list, from its bracket: element(p) reads one, and returns the position after it or null.
template <class Element>
const char* each_element(const char* p, const char* end, Element element) {
  p = after_space(p + 1, end);
  if (p < end && *p == ']') return p + 1;
  while (p < end) {
    p = element(p);
    if (!p) return nullptr;
    p = after_space(p, end);
    if (p >= end) return nullptr;
    if (*p == ']') return p + 1;
    if (*p != ',') return nullptr;
    p = after_space(p + 1, end);
  }
  return nullptr;
}

// An object, from its bracket: key(p) reads a key from its opening quote, then value(p) its value.
template <class Key, class Value>
const char* each_member(const char* p, const char* end, Key key, Value value) {
  p = after_space(p + 1, end);
  if (p < end && *p == '}') return p + 1;
  while (p < end && *p == '"') {
    p = key(p);
    if (!p) return nullptr;
    p = after_space(p, end);
    if (p >= end || *p != ':') return nullptr;
    p = after_space(p + 1, end);
    if (p >= end) return nullptr;
    p = value(p);
    if (!p) return nullptr;
    p = after_space(p, end);
    if (p >= end) return nullptr;
    if (*p == '}') return p + 1;
    if (*p != ',') return nullptr;
    p = after_space(p + 1, end);
  }
  return nullptr;
}

// Whether the key at p, a quote, is `name`, written without escapes.
inline bool is_key(const char* p, const char* end, const char* name, int64_t size) {
  return end - p >= size + 2 && !std::memcmp(p + 1, name, size) && p[size + 1] == '"';
}

}  // namespace o2::json
