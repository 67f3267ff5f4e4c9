#include "formats/vw_text.hpp"

#include <array>
#include <string_view>

#include "core/crc.hpp"
#include "formats/json.hpp"

namespace o2::vw {
namespace {

constexpr int SPACES = 64;         // largest number of namespaces of a line
constexpr int64_t LONGEST = 20;    // characters of a number that is kept as it is written: see vw_events.py
constexpr double LARGEST = std::numeric_limits<float>::max();

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

const char* after_blanks(const char* p, const char* end) {
  while (p < end && is_blank(*p)) p++;
  return p;
}

bool ends_part(const char* p, const char* end) { return p >= end || *p == '|' || *p == '\n' || is_blank(*p); }

// Bytes of a name that have no meaning of their own.
constexpr auto PLAIN = [] {
  std::array<bool, 256> plain{};
  for (int c = 33; c < 256; c++) plain[c] = c != '"' && c != ':' && c != '\\' && c != '|';
  return plain;
}();

// -- a part of a line, from its first bar on

enum class Kind { UNUSUAL, LINE_END, NO_NAMESPACE, NAMESPACE, FEATURE };

struct Part {
  Kind kind;
  const char* begin;
  const char* colon;  // the last one; null: none
  const char* end;
  std::string_view name() const { return {begin, static_cast<size_t>((colon ? colon : end) - begin)}; }
};

Part next_part(const char* p, const char* end) {
  p = after_blanks(p, end);
  if (p >= end || *p == '\n') return {Kind::LINE_END, p, nullptr, p};
  Kind kind = Kind::FEATURE;
  if (*p == '|') {
    p++;
    if (p >= end || *p == '\n' || *p == '|' || is_blank(*p)) return {Kind::NO_NAMESPACE, p, nullptr, p};
    kind = Kind::NAMESPACE;
  }
  const char *const begin = p, *colon = nullptr;
  for (; p < end; p++) {
    const auto byte = static_cast<uint8_t>(*p);
    if (PLAIN[byte]) continue;
    if (byte != ':') break;
    colon = p;
  }
  return {ends_part(p, end) ? kind : Kind::UNUSUAL, begin, colon, p};
}

// -- the part of a line before its first bar

enum class Line { UNUSUAL, PLAIN, LABELLED, SHARED };

// Reads label and tag. Returns the kind of the line; p is then at the bar.
Line scan_head(const char*& p, const char* end, Event& event) {
  Line found = Line::PLAIN;
  while (p < end && *p != '|') {
    if (is_blank(*p)) {
      p++;
      continue;
    }
    const char* const begin = p;
    while (p < end && static_cast<uint8_t>(*p) > 32 && *p != '|') p++;
    if (p == begin) return Line::UNUSUAL;  // a line without a bar, or a control character
    if (*begin == '\'') {
      if (std::string_view(begin + 1, static_cast<size_t>(p - begin - 1)).starts_with("seed=")) return Line::UNUSUAL;
      event.tag = begin + 1, event.tag_end = p;
    } else if (found != Line::PLAIN || (p < end && *p == '|')) {  // what touches the bar is a tag
      return Line::UNUSUAL;
    } else if (std::string_view(begin, static_cast<size_t>(p - begin)) == "shared") {
      found = Line::SHARED;
    } else {  // action:cost:probability
      double action, cost, probability;
      const char* at = json::number(begin, p, action);
      if (at && at < p && *at == ':') at = json::number(at + 1, p, cost);
      else return Line::UNUSUAL;
      if (at && at < p && *at == ':') at = json::number(at + 1, p, probability);
      else return Line::UNUSUAL;
      if (at != p || !(probability > 0 && probability <= 1)) return Line::UNUSUAL;
      event.cost = cost, event.probability = probability;
      found = Line::LABELLED;
    }
  }
  return p < end ? found : Line::UNUSUAL;
}

// -- features

// A number of a feature, from behind its colon to the end of the part. Returns the end; null: unusual.
const char* feature_value(const char* p, const char* end, double& value) {
  const char* const after = json::number(p, end, value);
  return after && after - p <= LONGEST && std::fabs(value) <= LARGEST && ends_part(after, end) ? after : nullptr;
}

// The features of a line, from its first bar on. Returns its end; null: unusual. prefix: the state before their names
const char* scan_line(const char* p, const char* end, uint32_t prefix, FeatureLists& out) {
  std::array<std::string_view, SPACES> spaces;
  int seen = 0;
  uint32_t state = prefix;
  bool hidden = false;  // names that start with _ are reserved by VW
  const auto add = [&](const char* begin, uint32_t of_name, double value) {
    if (!hidden && (seen > 0 || *begin != '_')) out.add(mixed(of_name), static_cast<float>(value));
  };
  while (true) {
    p = after_blanks(p, end);
    const char* const begin = p;
    uint32_t of_name = state;
    double value = 1;
    while (p < end && PLAIN[static_cast<uint8_t>(*p)]) of_name = crc(of_name, static_cast<uint8_t>(*p++));
    const char* const after = p == begin ? nullptr : p < end && *p == ':' ? feature_value(p + 1, end, value) : ends_part(p, end) ? p : nullptr;
    if (after) {  // a feature with one colon or none, hashed as it was read
      add(begin, of_name, value);
      p = after;
      continue;
    }
    const Part part = next_part(begin, end);
    p = part.end;
    switch (part.kind) {
      case Kind::FEATURE:
        value = 1;
        if (part.colon && feature_value(part.colon + 1, end, value) != p) return nullptr;
        add(part.begin, crc(state, part.name()), value);
        break;
      case Kind::NAMESPACE: {
        if (part.colon || seen == SPACES) return nullptr;
        for (int k = 0; k < seen; k++)
          if (spaces[k] == part.name()) return nullptr;
        spaces[seen++] = part.name();
        hidden = *part.begin == '_';
        state = crc(crc(prefix, part.name()), '.');
        break;
      }
      case Kind::LINE_END:
        return p;
      case Kind::NO_NAMESPACE:
        if (seen > 0) return nullptr;  // features without a namespace come first in JSON
        break;
      case Kind::UNUSUAL:
        return nullptr;
    }
  }
}

// The lines up to one that is empty: an event for another reader.
void find_end(Event& event, const char* end) {
  const char* p = event.begin;
  event.lines = 0;
  event.end = p;
  while (p < end) {
    const char* stop = p;
    bool filled = false;
    for (; stop < end && *stop != '\n'; stop++) filled = filled || !is_blank(*stop);
    if (!filled) return;
    event.end = stop;
    event.lines++;
    p = stop + 1;
  }
}

// Whether the event is usual.
bool scan_lines(const char* p, const char* end, FeatureLists& out, Event& event) {
  const int64_t first = out.ends.size();
  out.ends.push(out.hashes.size());  // of the shared features
  while (p < end) {
    p = after_blanks(p, end);
    if (p == end || *p == '\n') break;
    const Line line = scan_head(p, end, event);
    const bool labelled = line == Line::LABELLED, shared = line == Line::SHARED;
    if (line == Line::UNUSUAL || (labelled && event.action >= 0) || (shared && event.lines > 0)) return false;
    if (labelled) event.action = out.ends.size() - first - 1;
    p = scan_line(p, end, shared ? crc(NO_NAME, "shared.") : NO_NAME, out);
    if (!p) return false;
    if (shared) out.ends[first] = out.hashes.size();
    else out.ends.push(out.hashes.size());
    event.lines++;
    event.end = p++;
  }
  return out.ends.size() > first + 1;
}

}  // namespace

Event scan_event(const char* p, const char* end, FeatureLists& out) {
  const int64_t features = out.hashes.size(), lists = out.ends.size();
  Event event;
  event.begin = p;
  event.usual = scan_lines(p, end, out, event);
  if (!event.usual) {
    out.truncate(features, lists);
    event.action = -1;
    find_end(event, end);
  }
  return event;
}

// -- JSON

namespace {

void write(std::string_view text, Buffer<char>& out) { out.append(text.data(), static_cast<int64_t>(text.size())); }

// A line, from its first bar on, as members of an object, without braces. Returns its end.
const char* write_members(const char* p, const char* end, Buffer<char>& out) {
  bool inside = false, first = true;  // of a namespace; nothing is written in this object
  while (true) {
    const Part part = next_part(p, end);
    p = part.end;
    if (inside && part.kind != Kind::FEATURE && part.kind != Kind::NO_NAMESPACE) {
      out.push('}');
      first = false;
    }
    if (part.kind == Kind::LINE_END || part.kind == Kind::UNUSUAL) return p;
    if (part.kind == Kind::NO_NAMESPACE) continue;
    if (!first) out.push(',');
    first = false;
    out.push('"');
    write(part.name(), out);
    write("\":", out);
    if (part.kind == Kind::NAMESPACE) {
      out.push('{');
      inside = first = true;
    } else if (part.colon) {
      write({part.colon + 1, static_cast<size_t>(p - part.colon - 1)}, out);
    } else {
      out.push('1');
    }
  }
}

}  // namespace

void write_json(const char* p, const char* end, Buffer<char>& out) {
  out.make_room(8 * (end - p) + 32);  // a part is a byte or more, and eight around it
  out.push('{');
  bool any = false;
  while (true) {
    while (p < end && (*p == '\n' || is_blank(*p))) p++;
    if (p == end) break;
    Event event;
    if (scan_head(p, end, event) == Line::SHARED) {
      const int64_t before = out.size();
      p = write_members(p, end, out);
      if (out.size() > before) out.push(',');
    } else {
      write(any ? ",{" : "\"_multi\":[{", out);
      p = write_members(p, end, out);
      out.push('}');
      any = true;
    }
    p += p < end;
  }
  write("]}", out);
}

}  // namespace o2::vw
