#include "formats/json.hpp"

#include <charconv>
#include <iterator>

#include "core/crc.hpp"

namespace o2::json {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The number of four hexadecimal digits, or -1.
int code_unit(const char* p, const char* end) {
  if (end - p < 4) return -1;
  int code = 0;
  for (int i = 0; i < 4; i++) {
    const int d = digit(p[i]);
    if (d < 0) return -1;
    code = code * 16 + d;
  }
  return code;
}

bool is_digit(char c) { return static_cast<uint8_t>(c - '0') < 10; }

// -- strings

// One escape, from its backslash. `write` takes the bytes of the character, in UTF-8; half of a surrogate pair is unusual.
template <class Write>
const char* escape(const char* p, const char* end, Write write) {
  if (end - p < 2) return nullptr;
  const char letter = p[1];
  p += 2;
  switch (letter) {
    case '"': case '\\': case '/': write(letter); return p;
    case 'b': write('\b'); return p;
    case 'f': write('\f'); return p;
    case 'n': write('\n'); return p;
    case 'r': write('\r'); return p;
    case 't': write('\t'); return p;
    case 'u': break;
    default: return nullptr;
  }
  int code = code_unit(p, end);
  if (code < 0) return nullptr;
  p += 4;
  if (code >= 0xD800 && code < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
    const int low = code_unit(p + 2, end);
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      p += 6;
    }
  }
  if (code >= 0xD800 && code < 0xE000) return nullptr;
  const auto more = [&](int shift) { write(static_cast<char>(0x80 | ((code >> shift) & 63))); };
  if (code < 0x80) {
    write(static_cast<char>(code));
  } else if (code < 0x800) {
    write(static_cast<char>(0xC0 | (code >> 6))), more(0);
  } else if (code < 0x10000) {
    write(static_cast<char>(0xE0 | (code >> 12))), more(6), more(0);
  } else {
    write(static_cast<char>(0xF0 | (code >> 18))), more(12), more(6), more(0);
  }
  return p;
}

// -- numbers

struct Decimal {  // ±mantissa · 10^power
  uint64_t mantissa = 0;  // of at most 19 digits; with more of them, a remainder
  int64_t digits = 0, power = 0;
  bool negative = false;
};

const char* decimal(const char* p, const char* end, Decimal& out) {
  Decimal found;
  found.negative = p < end && *p == '-';
  p += found.negative;
  const char* const first = p;
  const auto take_digits = [&] {
    while (p < end && is_digit(*p)) found.mantissa = found.mantissa * 10 + static_cast<uint64_t>(*p++ - '0');
  };
  take_digits();
  found.digits = p - first;
  if (!found.digits || (found.digits > 1 && *first == '0')) return nullptr;
  if (p < end && *p == '.') {
    const char* const point = ++p;
    take_digits();
    if (p == point) return nullptr;
    found.power = point - p;
    found.digits += p - point;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    p++;
    const bool below = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    const char* const from = p;
    int64_t exponent = 0;
    for (; p < end && is_digit(*p); p++)
      if (exponent < 100000) exponent = exponent * 10 + (*p - '0');
    if (p == from) return nullptr;
    found.power += below ? -exponent : exponent;
  }
  out = found;
  return p;
}

constexpr double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};  // exact
constexpr int64_t LARGEST_TEN = std::size(TENS) - 1;

}  // namespace

const char* after_string(const char* p, const char* end) {
  p++;
  while (true) {
    p = to_special(p, end);
    if (p >= end) return nullptr;
    if (*p == '"') return p + 1;
    if (*p != '\\' || end - p < 2) return nullptr;
    if (p[1] == 'u') {  // half of a surrogate pair is JSON, if not text
      if (code_unit(p + 2, end) < 0) return nullptr;
      p += 6;
    } else {
      p = escape(p, end, [](char) {});
      if (!p) return nullptr;
    }
  }
}

const char* hashed_string(const char* p, const char* end, char before, uint32_t& state) {
  uint32_t own = state;
  bool first = before != 0;  // the byte at p, a quote, stands for `before`
  p += !first;
  while (true) {
    if constexpr (WORDS)
      while (end - p >= 8) {
        uint64_t word = word_at(p);
        if (first) word ^= static_cast<uint64_t>('"' ^ before);
        first = false;
        const uint64_t found = special(word);
        if (found) {
          const int size = std::countr_zero(found) / 8;
          own = crc_of_part(own, word, size);
          p += size;
          break;
        }
        own = crc_of_word(own, word);
        p += 8;
      }
    if (first) own = crc(own, static_cast<uint8_t>(before)), p++;
    first = false;
    while (p < end && *p != '"' && *p != '\\' && static_cast<uint8_t>(*p) >= 32) own = crc(own, static_cast<uint8_t>(*p++));
    if (p >= end) return nullptr;
    if (*p == '"') break;
    if (*p != '\\') return nullptr;
    p = escape(p, end, [&](char c) { own = crc(own, static_cast<uint8_t>(c)); });
    if (!p) return nullptr;
  }
  state = own;
  return p + 1;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (const char *p = text.data(), *const end = p + text.size(); p && p < end;) {
    if (*p != '\\') out.push_back(*p++);
    else p = escape(p, end, [&](char c) { out.push_back(c); });
  }
  return out;
}

// Below 2^53, and with powers of ten that are exact, one product or quotient is rounded once. All others are for
// std::from_chars, or unusual where the library has none for doubles.
const char* number(const char* p, const char* end, double& value) {
  Decimal found;
  const char* const after = decimal(p, end, found);
  if (!after) return nullptr;
  const auto [mantissa, digits, power, negative] = found;
  if (digits <= 19 && mantissa < (uint64_t{1} << 53) && (mantissa == 0 || (power >= -LARGEST_TEN && power <= LARGEST_TEN))) {
    double x = static_cast<double>(mantissa);
    if (mantissa) x = power < 0 ? x / TENS[-power] : x * TENS[power];
    value = negative ? -x : x;
    return after;
  }
#ifdef __cpp_lib_to_chars
  return std::from_chars(p, after, value).ec == std::errc() ? after : nullptr;
#else
  return nullptr;
#endif
}

const char* after_value(const char* p, const char* end, int depth) {
  p = after_space(p, end);
  if (p >= end) return nullptr;
  switch (*p) {
    case '"': return after_string(p, end);
    case 't': case 'f': case 'n': return after_word(p, end);
    case '{': {
      if (depth >= DEEPEST) return nullptr;
      const auto key = [end](const char* q) { return after_string(q, end); };
      return each_member(p, end, key, [=](const char* q) { return after_value(q, end, depth + 1); });
    }
    case '[': {
      if (depth >= DEEPEST) return nullptr;
      return each_element(p, end, [=](const char* q) { return after_value(q, end, depth + 1); });
    }
    default: {
      Decimal any;
      return decimal(p, end, any);
    }
  }
}

}  // namespace o2::json
