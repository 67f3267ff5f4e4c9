// Hashed features of action sets, beside a reader that builds their names.
#include "formats/json_sets.hpp"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/crc.hpp"
#include "core/sentences.hpp"
#include "formats/json.hpp"
#include "fuzzing.hpp"

using namespace o2;
using fuzzing::expect;

namespace {

struct Value {  // of JSON that `after_value` reads
  char kind = 0;  // one of { [ " 0 t f n
  std::string text;
  std::vector<std::string> keys;
  std::vector<bool> reserved;  // by VW: the key's text in JSON begins with _
  std::vector<Value> inner;
};

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) return out.push_back(static_cast<char>(code));
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const uint32_t lead[] = {0, 0xC0, 0xE0, 0xF0};
  out.push_back(static_cast<char>(lead[more] | code >> (6 * more)));
  for (int k = more; k--;) out.push_back(static_cast<char>(0x80 | (code >> (6 * k) & 63)));
}

std::string parsed_string(const char*& p) {
  std::string out;
  for (p++; *p != '"'; p++) {
    if (*p != '\\') {
      out.push_back(*p);
      continue;
    }
    p++;
    const std::string letters = "bfnrt", meanings = "\b\f\n\r\t";
    const auto unit = [](const char* at) { return static_cast<uint32_t>(std::stoul(std::string(at, at + 4), nullptr, 16)); };
    if (const size_t which = letters.find(*p); which != std::string::npos) {
      out.push_back(meanings[which]);
    } else if (*p == 'u') {
      uint32_t code = unit(p + 1);
      p += 4;
      const bool paired = code >= 0xD800 && code < 0xDC00 && p[1] == '\\' && p[2] == 'u' && unit(p + 3) >> 10 == 0x37;
      if (paired) {  // one half stands alone only in what is not hashed
        code = 0x10000 + ((code & 0x3FF) << 10) + (unit(p + 3) & 0x3FF);
        p += 6;
      }
      append_utf8(out, code);
    } else {
      out.push_back(*p);
    }
  }
  p++;
  return out;
}

void skip_space(const char*& p) {
  while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n') p++;
}

Value parsed(const char*& p) {
  Value made;
  skip_space(p);
  made.kind = *p;
  if (*p == '"') {
    made.text = parsed_string(p);
  } else if (*p == '{' || *p == '[') {
    const char close = *p == '{' ? '}' : ']';
    p++;
    for (skip_space(p); *p != close; skip_space(p)) {
      if (*p == ',') p++;
      skip_space(p);
      if (close == '}') {
        made.reserved.push_back(p[1] == '_');
        made.keys.push_back(parsed_string(p));
        skip_space(p);
        p++;
      }
      made.inner.push_back(parsed(p));
    }
    p++;
  } else {
    const char* const begin = p;
    while (*p && !std::strchr(",]} \t\r\n", *p)) p++;
    made.text = std::string(begin, p);
    if (made.kind == '-' || (made.kind >= '0' && made.kind <= '9')) made.kind = '0';
  }
  return made;
}

struct Named {
  std::string name;
  float value;
};

void features(const Value& one, const std::string& name, int64_t place, std::vector<Named>& out) {
  if (one.kind == '"' && is_text(one.text)) {
    each_word(one.text, [&](std::string_view word) { out.push_back({name + "=" + std::string(word), 1}); });
  } else if (one.kind == '"' || one.kind == 't' || one.kind == 'f') {
    out.push_back({name + "=" + one.text, 1});
  } else if (one.kind == '0') {
    out.push_back({place < 0 ? name : name + "[" + std::to_string(place) + "]",
                   static_cast<float>(std::strtod(one.text.c_str(), nullptr))});
  } else {
    for (size_t i = 0; i < one.inner.size(); i++) {
      const bool list = one.kind == '[';
      features(one.inner[i], list ? name : name + "." + one.keys[i], list ? static_cast<int64_t>(i) : -1, out);
    }
  }
}

// The lists of a set: shared features, then those of each action.
std::vector<std::vector<Named>> reference(const Value& set) {
  std::vector<std::vector<Named>> lists(1);
  for (size_t i = 0; i < set.inner.size(); i++) {
    if (!set.reserved[i]) features(set.inner[i], "shared." + set.keys[i], -1, lists[0]);
    if (!set.reserved[i] || set.keys[i] != "_multi") continue;
    for (const Value& action : set.inner[i].inner) {
      lists.emplace_back();
      for (size_t k = 0; k < action.inner.size(); k++)
        if (!action.reserved[k]) features(action.inner[k], action.keys[k], -1, lists.back());
    }
  }
  return lists;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzzing::Input input(data, size);
  const char *const begin = input.begin(), *const end = input.end();
  FeatureLists out;
  const char* const after = hash_set(begin, end, out);
  const int64_t actions = count_actions(begin, end);
  if (!after) {
    expect(out.hashes.size() == 0 && out.ends.size() == 0, "nothing is added of an unusual set");
    return 0;
  }
  expect(json::after_value(begin, end) == after, "a set is JSON");
  expect(out.hashes.size() == out.values.size(), "each feature has a hash and a value");
  expect(actions == out.ends.size() - 1 && actions > 0, "the actions that are counted are read");
  const std::string text(begin, after);
  const char* p = text.c_str();
  const auto lists = reference(parsed(p));
  expect(lists.size() == static_cast<size_t>(out.ends.size()), "no list is missing");
  int64_t at = 0;
  for (size_t list = 0; list < lists.size(); list++) {
    for (const Named& one : lists[list]) {
      expect(at < out.hashes.size(), "no feature is missing");
      expect(out.hashes[at] == mixed(crc(NO_NAME, one.name)), "names are hashed as they are spelled");
      expect(out.values[at] == one.value, "values are those of the text");
      at++;
    }
    expect(out.ends[static_cast<int64_t>(list)] == at, "lists end where they should");
  }
  return 0;
}
