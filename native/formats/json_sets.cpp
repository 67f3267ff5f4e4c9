#include "formats/json_sets.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/crc.hpp"
#include "core/sentences.hpp"
#include "formats/json.hpp"

namespace o2 {
namespace {

using json::after_space, json::after_value;

constexpr double LARGEST = std::numeric_limits<float>::max();

// Whether this key, at its quote, is reserved by VW.
bool is_hidden(const char* p, const char* end) { return end - p >= 2 && p[1] == '_'; }
bool is_multi(const char* p, const char* end) { return json::is_key(p, end, "_multi", 6); }

// The state of `name[place]`.
uint32_t numbered(uint32_t state, int64_t place) {
  char text[24] = {'['};
  char* after = std::to_chars(text + 1, text + sizeof text - 1, place).ptr;
  *after++ = ']';
  return crc(state, std::string_view(text, after - text));
}

// Whether a string in JSON could be a text: with an escape, which may stand for a blank, or with blanks.
bool may_be_text(std::string_view text) {
  int seams = 0;
  for (const char c : text) seams += c == ' ' || c == '\\';
  return seams >= LEAST_WORDS - 1;
}

class SetScanner {
 public:
  SetScanner(const char* end, FeatureLists& out) : end(end), out(out) {}

  const char* set(const char* p) {
    const int64_t list = out.ends.size();
    const uint32_t prefix = crc(NO_NAME, "shared");
    out.ends.push(out.hashes.size());
    int64_t late = -1;  // where features begin that are shared and come after the actions
    bool multi = false, hidden = false, found = false;
    uint32_t name = 0;
    const auto key = [&](const char* q) {
      multi = is_multi(q, end), hidden = is_hidden(q, end), name = prefix;
      return hidden ? json::after_string(q, end) : json::hashed_string(q, end, '.', name);
    };
    p = json::each_member(p, end, key, [&](const char* q) -> const char* {
      if (multi) {
        if (found || *q != '[') return nullptr;
        found = true;
        return json::each_element(q, end, [&](const char* at) { return action(at); });
      }
      if (hidden) return after_value(q, end, 1);
      if (found && late < 0) late = out.hashes.size();
      q = value(q, name, -1, 1);
      if (!found) out.ends[list] = out.hashes.size();
      return q;
    });
    if (!p || out.ends.size() < list + 2) return nullptr;
    if (late >= 0) bring_forward(late, list);
    return p;
  }

 private:
  const char* end;
  FeatureLists& out;

  // Puts the features from `late` on at the end of this list.
  void bring_forward(int64_t late, int64_t list) {
    const int64_t begin = out.ends[list], n = out.hashes.size();
    std::rotate(&out.hashes[begin], &out.hashes[late], out.hashes.data() + n);
    std::rotate(&out.values[begin], &out.values[late], out.values.data() + n);
    for (int64_t i = list; i < out.ends.size(); i++) out.ends[i] += n - late;
  }

  const char* action(const char* p) {
    if (p >= end || *p != '{') return nullptr;
    bool hidden = false;
    uint32_t name = 0;
    const auto key = [&](const char* q) {
      hidden = is_hidden(q, end), name = NO_NAME;
      return hidden ? json::after_string(q, end) : json::hashed_string(q, end, 0, name);
    };
    p = json::each_member(p, end, key, [&](const char* q) {
      return hidden ? after_value(q, end, 3) : value(q, name, -1, 3);
    });
    out.ends.push(out.hashes.size());
    return p;
  }

  // A value of this name, within `depth` others. place: its index in a list, or -1.
  const char* value(const char* p, uint32_t name, int64_t place, int depth) {
    if (p >= end) return nullptr;
    switch (*p) {
      case '"': {
        const char* const begin = p + 1;
        const uint32_t path = name;
        p = json::hashed_string(p, end, '=', name);
        if (!p) return p;
        const std::string_view raw(begin, p - 1 - begin);
        const std::string text = may_be_text(raw) ? json::unescaped(raw) : std::string();
        if (is_text(text)) each_word(text, [&](std::string_view word) { out.add(mixed(crc(crc(path, '='), word)), 1); });
        else out.add(mixed(name), 1);
        return p;
      }
      case '{': {
        if (depth >= json::DEEPEST) return nullptr;
        uint32_t inner = 0;
        const auto key = [&](const char* q) {
          inner = name;
          return json::hashed_string(q, end, '.', inner);
        };
        return json::each_member(p, end, key, [&](const char* q) { return value(q, inner, -1, depth + 1); });
      }
      case '[': {
        if (depth >= json::DEEPEST || place >= 0) return nullptr;
        int64_t next = 0;
        return json::each_element(p, end, [&](const char* q) { return value(q, name, next++, depth + 1); });
      }
      case 't': case 'f': case 'n': {
        const char* const after = json::after_word(p, end);
        if (after && *p != 'n') out.add(mixed(crc(name, *p == 't' ? "=true" : "=false")), 1);
        return after;
      }
      default: {
        double x;
        p = json::number(p, end, x);
        if (!p || std::fabs(x) > LARGEST) return nullptr;
        out.add(mixed(place < 0 ? name : numbered(name, place)), static_cast<float>(x));
        return p;
      }
    }
  }
};

}  // namespace

const char* hash_set(const char* p, const char* end, FeatureLists& out) {
  const int64_t features = out.hashes.size(), lists = out.ends.size();
  if (p >= end || *p != '{') return nullptr;
  out.make_room(end - p + 1, (end - p) / 2 + 2);  // a feature takes at least one byte, an action three
  p = SetScanner(end, out).set(p);
  if (!p) out.truncate(features, lists);
  return p;
}

int64_t count_actions(const char* p, const char* end) {
  p = after_space(p, end);
  if (p >= end || *p != '{') return 0;
  int64_t count = 0;
  bool multi = false;
  const auto key = [&](const char* q) {
    multi = is_multi(q, end);
    return json::after_string(q, end);
  };
  const auto action = [&](const char* q) {
    count++;
    return q < end && *q == '{' ? after_value(q, end, 2) : nullptr;
  };
  p = json::each_member(p, end, key, [&](const char* q) -> const char* {
    if (!multi) return after_value(q, end, 1);
    count = 0;
    return *q == '[' ? json::each_element(q, end, action) : nullptr;
  });
  return p ? count : 0;
}

}  // namespace o2
