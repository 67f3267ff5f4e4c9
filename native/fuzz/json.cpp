// JSON's syntax, beside plain reference readers: numbers as strtod rounds them, strings byte by byte.
#include "formats/json.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/crc.hpp"
#include "formats/utf8.hpp"
#include "fuzzing.hpp"

using namespace o2;
using fuzzing::expect;

namespace {

bool same_bits(double a, double b) { return !std::memcmp(&a, &b, sizeof a); }

// By the table of the standard: how many bytes a character has, by its first two.
bool reference_is_utf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    uint32_t code = static_cast<uint8_t>(text[i++]);
    if (code < 0x80) continue;
    const int more = code >> 5 == 6 ? 1 : code >> 4 == 14 ? 2 : code >> 3 == 30 ? 3 : 0;
    if (!more || text.size() - i < static_cast<size_t>(more)) return false;
    code &= 0x3Fu >> more;
    for (int k = 0; k < more; k++, i++) {
      const uint8_t next = static_cast<uint8_t>(text[i]);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 63);
    }
    const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
  }
  return true;
}

void check_number(const char* p, const char* end) {
  double found;
  const char* const after = json::number(p, end, found);
  expect(!after || (after > p && after <= end), "a number ends within its text");
  if (after) expect(same_bits(found, std::strtod(std::string(p, after).c_str(), nullptr)), "a number is rounded as by strtod");
  if (after) expect(json::after_value(p, end) == after, "a number is a value");
}

void check_string(const char* p, const char* end) {
  const char* const after = json::after_string(p, end);
  expect(!after || (after > p + 1 && after <= end && after[-1] == '"'), "a string ends with a quote");
  for (const char before : {'\0', '=', '.'}) {
    uint32_t state = NO_NAME;
    const char* const hashed = json::hashed_string(p, end, before, state);
    expect(!hashed || hashed == after, "a hashed string is a string");
    const char* const plain = json::after_plain_string(p, end);
    expect(!plain || plain == hashed, "a plain string is hashed");
    if (!plain) continue;
    uint32_t reference = before ? crc(NO_NAME, static_cast<uint8_t>(before)) : NO_NAME;
    for (const char* q = p + 1; q < plain - 1; q++) reference = crc(reference, static_cast<uint8_t>(*q));
    expect(state == reference, "bytes are hashed one after the other");
    expect(crc(before ? crc(NO_NAME, static_cast<uint8_t>(before)) : NO_NAME, {p + 1, plain - 1}) == reference,
           "eight bytes are hashed as one after the other");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzzing::Input input(data, size);
  const char* const end = input.end();
  for (const char* p = input.begin(); p < end; p++) {
    if (*p == '"') check_string(p, end);
    if (*p == '-' || (*p >= '0' && *p <= '9')) check_number(p, end);
  }
  const char* const after = json::after_value(input.begin(), end);
  expect(!after || (after > input.begin() && after <= end), "a value ends within its text");
  expect(is_utf8(input.begin(), end) == reference_is_utf8(std::string(input.begin(), end)), "UTF-8 is known");
  return 0;
}
