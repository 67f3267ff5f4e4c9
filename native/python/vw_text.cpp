#include "formats/vw_text.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <vector>

#include "formats/lines.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::Buffer, o2::FeatureLists, o2::NewArray, o2::vw::Event;

namespace {

using Found = std::tuple<NewArray<int64_t, 2>, NewArray<int64_t>, NewArray<bool>, NewArray<int64_t>, NewArray<double, 2>,
                         NewArray<int64_t, 2>, NewArray<int32_t>, NewArray<int32_t>, NewArray<uint32_t>, NewArray<float>>;

NewArray<int32_t> narrowed(const Buffer<int64_t>& numbers) {
  NewArray<int32_t> made({numbers.size()});
  for (int64_t i = 0; i < numbers.size(); i++) made.view[i] = static_cast<int32_t>(numbers[i]);
  return made;
}

Found scan_vw_text(nb::bytes block) {
  const char *const begin = block.c_str(), *const end = begin + block.size();
  if (block.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) throw std::invalid_argument("block: expected at most 2 GB");
  std::vector<Event> events;
  FeatureLists lists;
  Buffer<int64_t> numbered, sets;  // the first line of each event, from 0; the end of its lists
  {
    nb::gil_scoped_release others_run;
    const int64_t newlines = o2::newlines(begin, end);
    lists.make_room((end - begin) / 2 + 1, newlines + newlines / 2 + 2);
    numbered.make_room(newlines / 2 + 1), sets.make_room(newlines / 2 + 2);
    sets.push(0);
    int64_t line = 0;
    for (const char* p = begin; p < end;) {
      if (*p == '\n' || *p == ' ' || *p == '\t' || *p == '\r') {
        line += *p++ == '\n';
        continue;
      }
      const Event event = o2::vw::scan_event(p, end, lists);
      numbered.push(line), sets.push(lists.ends.size());
      p = event.end + 1;
      line += event.lines;
      events.push_back(event);
    }
  }
  const auto n = static_cast<int64_t>(events.size());
  NewArray<int64_t, 2> places({n, 2}), tags({n, 2});
  NewArray<bool> usual({n});
  NewArray<int64_t> actions({n});
  NewArray<double, 2> labels({n, 2});
  for (int64_t s = 0; s < n; s++) {
    const Event& one = events[s];
    places.view[2 * s] = one.begin - begin, places.view[2 * s + 1] = one.end - begin;
    tags.view[2 * s] = one.tag ? one.tag - begin : -1, tags.view[2 * s + 1] = one.tag ? one.tag_end - begin : -1;
    usual.view[s] = one.usual;
    actions.view[s] = one.action;
    labels.view[2 * s] = one.cost, labels.view[2 * s + 1] = one.probability;
  }
  return {std::move(places), NewArray<int64_t>(std::move(numbered)), std::move(usual), std::move(actions), std::move(labels), std::move(tags),
          narrowed(sets), narrowed(lists.ends), NewArray<uint32_t>(std::move(lists.hashes)), NewArray<float>(std::move(lists.values))};
}

std::tuple<NewArray<uint8_t>, NewArray<int64_t, 2>> vw_text_json(Array<const uint8_t> data, Array<const int64_t, 2> places,
                                                                 Array<const bool> usual) {
  const int64_t n = places.shape[0];
  if (places.shape[1] != 2 || usual.size() != n) throw std::invalid_argument("places: expected start and end of each event");
  for (int64_t s = 0; s < n; s++)
    if (places[2 * s] < 0 || places[2 * s] > places[2 * s + 1] || places[2 * s + 1] > data.size())
      throw std::invalid_argument("places: found one beyond the data");
  NewArray<int64_t, 2> written({n, 2});
  Buffer<char> out;
  {
    nb::gil_scoped_release others_run;
    const auto* text = reinterpret_cast<const char*>(data.data);
    for (int64_t s = 0; s < n; s++) {
      written.view[2 * s] = out.size();
      if (usual[s]) o2::vw::write_json(text + places[2 * s], text + places[2 * s + 1], out);
      written.view[2 * s + 1] = usual[s] ? out.size() : written.view[2 * s];
    }
  }
  return {NewArray<uint8_t>({reinterpret_cast<const uint8_t*>(out.data()), static_cast<size_t>(out.size())}), std::move(written)};
}

}  // namespace

void bind_vw_text(nb::module_& m) {
  m.def("scan_vw_text", &scan_vw_text, nb::arg("block"), "Scan events in Vowpal Wabbit's text. Returns the columns of `Events`.");
  m.def("vw_text_json", &vw_text_json, nb::arg("data"), nb::arg("places"), nb::arg("usual"),
        "Return the JSON of the usual events at these places, [n, 2], and its places.");
}
