#include "formats/dsjson.hpp"

#include <cmath>
#include <limits>
#include <optional>

#include "formats/json.hpp"
#include "formats/utf8.hpp"

namespace o2 {
namespace {

using json::after_space;

constexpr double NONE = std::numeric_limits<double>::quiet_NaN();
constexpr double MOST_ACTIONS = 1e9;
constexpr size_t LARGEST_BLOCK = size_t{1} << 30;  // so that offsets are 32-bit
constexpr int PATIENCE = 16;  // contexts in a row that cannot be hashed: none of this block are

using Place = std::optional<std::string_view>;

bool is_whole(double x) { return x == std::floor(x) && std::fabs(x) <= MOST_ACTIONS; }

void push_text(TextColumn& column, Place text) {
  if (text) column.bytes.append(reinterpret_cast<const uint8_t*>(text->data()), static_cast<int64_t>(text->size()));
  column.offsets.push(static_cast<int32_t>(column.bytes.size()));
  column.missing.push(!text);
}

// What one line says.
struct Event {
  double cost = NONE, probability = NONE, label = NONE, index = NONE, drop = NONE;
  int8_t skip = -1;
  Place context, event_id, time;
};

class LineScanner {
 public:
  LineScanner(DsjsonLines& out, bool hashed) : out(out), hashing(hashed) {}

  // Adds the row of a line; whether it is fine.
  bool line(const char* p, const char* last) {
    end = last;
    const int64_t ranked = out.ranking.size(), chances = out.probabilities.size(), rest = out.rest.bytes.size();
    const int64_t features = out.lists.hashes.size(), lists = out.lists.ends.size();
    event = {};
    make_room(end - p);
    const bool fine = read(p, ranked, chances, rest, features, lists) && row(ranked);
    if (!fine) {
      out.ranking.truncate(ranked), out.probabilities.truncate(chances), out.rest.bytes.truncate(rest);
      out.lists.truncate(features, lists);
      event = {};
      out.action.push(-1), out.reward.push(NONE), out.propensity.push(NONE);
    }
    out.fine.push(fine);
    out.drop_probability.push(event.drop), out.skip.push(event.skip);
    push_text(out.context, event.context), push_text(out.event_id, event.event_id), push_text(out.time, event.time);
    out.rest.missing.push(out.rest.bytes.size() == rest);
    out.rest.offsets.push(static_cast<int32_t>(out.rest.bytes.size()));
    out.ranked.push(static_cast<int32_t>(out.ranking.size()));
    out.sets.push(static_cast<int32_t>(out.lists.ends.size()));
    return fine;
  }

 private:
  DsjsonLines& out;
  bool hashing;
  int not_hashed = 0;  // contexts since the last one that was
  const char* end = nullptr;
  Event event;

  void make_room(int64_t size) {
    out.ranking.make_room(size / 2 + 1), out.probabilities.make_room(size / 2 + 1);
    for (TextColumn* each : {&out.context, &out.event_id, &out.time, &out.rest}) each->bytes.make_room(size + 2);
  }

  bool read(const char* p, int64_t ranked, int64_t chances, int64_t rest, int64_t features, int64_t lists) {
    if (p >= end || *p != '{') return false;
    std::string_view name;
    const char* begin = nullptr;
    const auto key = [&](const char* q) {
      begin = q;
      q = json::after_plain_string(q, end);
      if (q) name = {begin + 1, static_cast<size_t>(q - begin - 2)};
      return q;
    };
    p = json::each_member(p, end, key, [&](const char* q) -> const char* {
      if (double* number = number_of(name)) return optional_number(q, *number);
      if (name == "EventId") return optional_text(q, event.event_id);
      if (name == "Timestamp") return optional_text(q, event.time);
      if (name == "a") return ranking(q, ranked);
      if (name == "p") return probabilities(q, chances);
      if (name == "_label_ca" || name == "_outcomes" || name == "_multi" || name == "_slots") return nullptr;
      if (name.starts_with("_label")) return nullptr;  // of VW's --json
      if (name == "c") {
        out.lists.truncate(features, lists);
        const char* const after = context(q);
        if (after) event.context = {q, static_cast<size_t>(after - q)};
        return after;
      }
      if (name == "_skipLearn") {
        if (*q != 't' && *q != 'f') return nullptr;
        event.skip = *q == 't';
        return json::after_word(q, end);
      }
      q = json::after_value(q, end);
      if (q) keep(begin, q, rest);
      return q;
    });
    if (!p || after_space(p, end) != end || !event.context) return false;
    if (out.rest.bytes.size() > rest) out.rest.bytes.push('}');
    return out.ranking.size() - ranked == out.probabilities.size() - chances;
  }

  double* number_of(std::string_view name) {
    switch (name.size()) {
      case 5: return name == "pdrop" ? &event.drop : nullptr;
      case 11: return name == "_label_cost" ? &event.cost : name == "_labelIndex" ? &event.index : nullptr;
      case 13: return name == "_label_Action" ? &event.label : nullptr;
      case 18: return name == "_label_probability" ? &event.probability : nullptr;
      default: return nullptr;
    }
  }

  const char* optional_number(const char* p, double& value) {
    value = NONE;
    return *p == 'n' ? json::after_word(p, end) : json::number(p, end, value);
  }

  const char* optional_text(const char* p, Place& text) {
    text.reset();
    if (*p == 'n') return json::after_word(p, end);
    if (*p != '"') return nullptr;
    const char* const after = json::after_plain_string(p, end);
    if (after) text = {p + 1, static_cast<size_t>(after - p - 2)};
    return after;
  }

  const char* ranking(const char* p, int64_t first) {
    if (*p != '[') return nullptr;
    out.ranking.truncate(first);
    return json::each_element(p, end, [&](const char* q) -> const char* {
      double place;
      q = json::number(q, end, place);
      if (!q || !is_whole(place) || place < 1) return nullptr;
      out.ranking.push(static_cast<int32_t>(place) - 1);
      return q;
    });
  }

  const char* probabilities(const char* p, int64_t first) {
    if (*p != '[') return nullptr;
    out.probabilities.truncate(first);
    return json::each_element(p, end, [&](const char* q) {
      double x;
      q = json::number(q, end, x);
      if (q) out.probabilities.push(x);
      return q;
    });
  }

  const char* context(const char* p) {
    if (!hashing) return json::after_value(p, end);
    const char* after = hash_set(p, end, out.lists);
    if (after) {
      not_hashed = 0;
      return after;
    }
    hashing = ++not_hashed < PATIENCE;
    return json::after_value(p, end);
  }

  // A member of the event without a column.
  void keep(const char* begin, const char* after, int64_t rest) {
    out.rest.bytes.push(out.rest.bytes.size() == rest ? '{' : ',');
    out.rest.bytes.append(reinterpret_cast<const uint8_t*>(begin), after - begin);
  }

  // Adds action, reward and propensity; false, and nothing is added, if the slow path is to say what is wrong.
  bool row(int64_t ranked) {
    const int64_t K = out.ranking.size() - ranked;
    double action = std::isnan(event.index) ? event.label - 1 : event.index, propensity = event.probability;
    if (std::isnan(action) && !std::isnan(event.cost)) return false;  // a cost without an action
    if (!std::isnan(event.label) && !is_whole(event.label)) return false;
    if (std::isnan(action) && K) action = out.ranking[ranked];
    if (std::isnan(propensity) && K) propensity = out.probabilities[ranked];
    if (!std::isnan(propensity) && !(propensity > 0 && propensity <= 1)) return false;
    if (!std::isnan(action) && !(action >= 0 && is_whole(action) && !(K > 1 && action >= static_cast<double>(K)))) return false;
    out.action.push(std::isnan(action) ? -1 : static_cast<int64_t>(action));
    out.reward.push(0.0 - event.cost), out.propensity.push(propensity);
    return true;
  }
};

}  // namespace

DsjsonLines scan_dsjson(std::string_view block, bool hashed) {
  DsjsonLines out;
  const char* const begin = block.data();
  const char* const end = begin + block.size();
  const auto line_end = [end](const char* p) {
    const void* found = p < end ? std::memchr(p, '\n', end - p) : nullptr;
    return found ? static_cast<const char*>(found) : end;
  };
  int64_t n = 0;
  for (const char* p = begin; p < end; p = line_end(p) + 1) n++;
  out.places.make_room(2 * n), out.numbered.make_room(n), out.fine.make_room(n), out.action.make_room(n);
  for (Buffer<double>* each : {&out.reward, &out.propensity, &out.drop_probability}) each->make_room(n);
  out.skip.make_room(n), out.ranked.make_room(n + 1), out.sets.make_room(n + 1);
  for (TextColumn* each : {&out.context, &out.event_id, &out.time, &out.rest}) {
    each->offsets.make_room(n + 1), each->missing.make_room(n);
    each->offsets.push(0);
  }
  out.ranked.push(0), out.sets.push(0);
  out.context.bytes.make_room(end - begin + 2 * n);
  const bool all_text = is_utf8(begin, end), small = block.size() <= LARGEST_BLOCK;
  LineScanner scanner(out, hashed);
  int64_t number = 0;
  for (const char* p = begin; p < end; number++) {
    const char* const stop = line_end(p);
    const char* const first = after_space(p, stop);
    if (first < stop) {
      out.places.push(first - begin), out.places.push(stop - begin), out.numbered.push(number);
      const bool readable = small && (all_text || is_utf8(first, stop));
      scanner.line(first, readable ? stop : first);  // an empty line is not fine
    }
    p = stop + 1;
  }
  return out;
}

}  // namespace o2
