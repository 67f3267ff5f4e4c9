// Events in Vowpal Wabbit's text, beside the JSON that is written of them.
#include "formats/vw_text.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "formats/json.hpp"
#include "fuzzing.hpp"

using namespace o2;
using fuzzing::expect;

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Usual events have the same features as their JSON. But for a namespace or a feature "_multi", which is that of the set there.
void check_json(const vw::Event& event, const FeatureLists& lists, int64_t first, int64_t begin) {
  Buffer<char> written;
  vw::write_json(event.begin, event.end, written);
  const auto exact = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(written.size()));
  const char *const json = std::copy_n(written.data(), written.size(), exact.get()) - written.size(), *const end = json + written.size();
  expect(json::after_value(json, end) == end, "what is written is JSON");
  if (std::string_view(event.begin, event.end).find("_multi") != std::string_view::npos) return;
  FeatureLists again;
  expect(hash_set(json, end, again) == end, "what is written is a set");
  expect(again.ends.size() == lists.ends.size() - first, "each action is written");
  expect(again.hashes.size() == lists.hashes.size() - begin, "each feature is written");
  for (int64_t i = 0; i < again.ends.size(); i++) expect(again.ends[i] == lists.ends[first + i] - begin, "actions keep their features");
  for (int64_t i = 0; i < again.hashes.size(); i++)
    expect(again.hashes[i] == lists.hashes[begin + i] && again.values[i] == lists.values[begin + i], "features are the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzzing::Input input(data, size);
  const char *const begin = input.begin(), *const end = input.end();
  const auto newlines = std::count(begin, end, '\n');
  FeatureLists lists;
  lists.make_room((end - begin) / 2 + 1, newlines + newlines / 2 + 2);
  for (const char* p = begin; p < end;) {
    if (is_blank(*p)) {
      p++;
      continue;
    }
    const int64_t first = lists.ends.size(), before = lists.hashes.size();
    const vw::Event event = vw::scan_event(p, end, lists);
    expect(event.begin == p && event.end > p && event.end <= end, "an event has an end");
    expect(event.lines == 1 + std::count(event.begin, event.end, '\n'), "lines are counted");
    expect(event.usual == (lists.ends.size() > first), "a usual event has actions");
    expect(lists.hashes.size() == lists.values.size(), "each feature has a value");
    if (event.usual) {
      expect(event.action < lists.ends.size() - first - 1, "the labelled line is an action");
      expect(event.action < 0 || (event.probability > 0 && event.probability <= 1), "a label has a probability");
      if (event.tag) expect(event.tag >= event.begin && event.tag <= event.tag_end && event.tag_end <= event.end, "a tag is in the event");
      check_json(event, lists, first, before);
    } else {
      expect(lists.hashes.size() == before, "an unusual event adds nothing");
    }
    p = event.end + 1;
  }
  return 0;
}
