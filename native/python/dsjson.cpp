#include "formats/dsjson.hpp"

#include <nanobind/stl/tuple.h>

#include "formats/lines.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::Buffer, o2::NewArray, o2::TextColumn;

namespace {

using Texts = std::tuple<NewArray<uint8_t>, NewArray<int32_t>, NewArray<bool>>;

template <class T>
NewArray<T> array(Buffer<T>& buffer) {
  return NewArray<T>(std::move(buffer));
}

Texts texts(TextColumn& column) { return {array(column.bytes), array(column.offsets), array(column.missing)}; }

auto scan_dsjson(nb::bytes block, bool hashed) {
  o2::DsjsonLines found;
  Buffer<int32_t> ends;
  {
    nb::gil_scoped_release others_run;
    found = o2::scan_dsjson({block.c_str(), block.size()}, hashed);
    ends.make_room(found.lists.ends.size());
    for (int64_t end : found.lists.ends.span()) ends.push(static_cast<int32_t>(end));
  }
  return std::tuple{array(found.places),  array(found.numbered),      array(found.fine),   array(found.action),
                    array(found.reward),  array(found.propensity),    array(found.drop_probability),
                    array(found.skip),    texts(found.context),       texts(found.event_id), texts(found.time),
                    texts(found.rest),    array(found.ranked),        array(found.ranking),
                    array(found.probabilities), array(found.sets),    array(ends),
                    array(found.lists.hashes),  array(found.lists.values)};
}

// Copies the texts data[places[r, 0] : places[r, 1]] to out, from offsets[r] on.
void gather_texts(Array<const uint8_t> data, Array<const int64_t, 2> places, Array<const int32_t> offsets, Array<uint8_t> out) {
  const int64_t n = places.shape[0];
  if (places.shape[1] != 2 || offsets.size() != n + 1) throw std::invalid_argument("places: expected [n, 2], and n + 1 offsets");
  for (int64_t r = 0; r < n; r++) {
    const int64_t first = places[2 * r], at = offsets[r], size = offsets[r + 1] - at;
    if (size == 0) continue;
    if (size < 0 || first < 0 || first + size > data.size() || at < 0 || at + size > out.size())
      throw std::invalid_argument("places: found a text beyond the data");
    std::copy_n(data.data + first, size, out.data + at);
  }
}

int64_t newlines(nb::bytes block) {
  const char* const begin = block.c_str();
  const char* const end = begin + block.size();
  const nb::gil_scoped_release others_run;
  return o2::newlines(begin, end);
}

}  // namespace

void bind_dsjson(nb::module_& m) {
  m.def("newlines", &newlines, nb::arg("block"), "Return the number of newlines.");
  m.def("scan_dsjson", &scan_dsjson, nb::arg("block"), nb::arg("hashed"),
        "Scan complete lines of dsjson. Returns the fields of `o2pl.formats.dsjson_table.Lines`.");
  m.def("gather_texts", &gather_texts, nb::arg("data"), nb::arg("places"), nb::arg("offsets"), nb::arg("out"),
        "Copy the texts data[places[r, 0] : places[r, 1]] to out[offsets[r] : offsets[r + 1]].",
        nb::call_guard<nb::gil_scoped_release>());
}
