// Lines of dsjson, with hashing and without.
#include "formats/dsjson.hpp"

#include <cmath>
#include <vector>

#include "formats/json.hpp"
#include "formats/utf8.hpp"
#include "fuzzing.hpp"

using namespace o2;
using fuzzing::expect;

namespace {

void check_text(const TextColumn& column, int64_t n) {
  expect(column.offsets.size() == n + 1 && column.missing.size() == n && column.offsets[0] == 0, "each row has a text");
  for (int64_t r = 0; r < n; r++) {
    const int64_t first = column.offsets[r], last = column.offsets[r + 1];
    expect(first <= last && (first == last || !column.missing[r]), "texts follow each other");
    const auto* const at = reinterpret_cast<const char*>(column.bytes.data());
    if (first < last) expect(is_utf8(at + first, at + last), "a text is UTF-8");
  }
  expect(column.offsets[n] == column.bytes.size(), "all bytes are of a text");
}

bool is_object(const TextColumn& column, int64_t row) {
  const auto* const at = reinterpret_cast<const char*>(column.bytes.data());
  const char *const begin = at + column.offsets[row], *const end = at + column.offsets[row + 1];
  return json::after_value(begin, end) == end;
}

void check(const DsjsonLines& found, int64_t size) {
  const int64_t n = found.fine.size();
  expect(found.places.size() == 2 * n && found.numbered.size() == n && found.action.size() == n, "each row has a place");
  expect(found.reward.size() == n && found.propensity.size() == n && found.skip.size() == n, "each row has numbers");
  expect(found.drop_probability.size() == n, "each row has all numbers");
  for (const TextColumn* each : {&found.context, &found.event_id, &found.time, &found.rest}) check_text(*each, n);
  expect(found.ranked.size() == n + 1 && found.sets.size() == n + 1, "each row has a ranking");
  expect(found.ranked[n] == found.ranking.size() && found.ranking.size() == found.probabilities.size(), "rankings are whole");
  expect(found.sets[n] == found.lists.ends.size() && found.lists.hashes.size() == found.lists.values.size(), "sets are whole");
  int64_t before = 0, end = 0;
  for (int64_t r = 0; r < n; r++) {
    expect(found.places[2 * r] >= before && found.places[2 * r] < found.places[2 * r + 1], "lines follow each other");
    before = found.places[2 * r + 1];
    const int64_t K = found.ranked[r + 1] - found.ranked[r];
    if (found.fine[r]) {
      expect(!found.context.missing[r] && is_object(found.context, r), "a context is JSON");
      expect(found.rest.missing[r] || is_object(found.rest, r), "the rest is JSON");
      expect(found.action[r] >= -1 && (K < 2 || found.action[r] < K), "an action is one of those that are ranked");
      expect(std::isnan(found.propensity[r]) || (found.propensity[r] > 0 && found.propensity[r] <= 1), "propensities are probabilities");
    } else {
      expect(found.context.missing[r] && K == 0 && found.sets[r] == found.sets[r + 1], "an unusual line is left");
    }
    expect(found.sets[r + 1] == found.sets[r] || found.sets[r + 1] > found.sets[r] + 1, "a set has actions");
  }
  for (int64_t list = 0; list < found.lists.ends.size(); list++) {
    expect(found.lists.ends[list] >= end, "lists follow each other");
    end = found.lists.ends[list];
  }
  expect(end == found.lists.hashes.size() && before <= size, "all features are of a list");
  for (int32_t action : found.ranking.span()) expect(action >= 0, "actions count from 0");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzzing::Input input(data, size);
  const auto length = static_cast<int64_t>(size);
  const DsjsonLines plain = scan_dsjson({input.begin(), size}, false), hashed = scan_dsjson({input.begin(), size}, true);
  check(plain, length), check(hashed, length);
  expect(plain.lists.ends.size() == 0, "nothing is hashed unless asked for");
  expect(plain.fine.size() == hashed.fine.size(), "lines are the same");
  for (int64_t r = 0; r < plain.fine.size(); r++) expect(plain.fine[r] == hashed.fine[r], "hashing does not change what is read");
  expect(plain.context.bytes.size() == hashed.context.bytes.size(), "contexts are the same");
  return 0;
}
