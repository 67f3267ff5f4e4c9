#include "core/expanding.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <vector>

#include "python/arrays.hpp"
#include "python/hashed.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray, o2::Encoding, o2::Entries, o2::Feature, o2::Features, o2::Pair, o2::Segment;
using o2::check_within, o2::features_of, o2::pairs_of, o2::segments_of;

namespace {

using Sparse = std::tuple<NewArray<int32_t>, NewArray<float>, NewArray<int64_t>>;  // indices, values, offsets

void check_offsets(Array<const int64_t> offsets, int64_t n) {
  int64_t before = 0;
  for (const int64_t offset : offsets.span()) {
    if (offset < before || offset > n) throw std::invalid_argument("offsets: expected increasing ones, within the data");
    before = offset;
  }
}

bool write_row(Array<const uint32_t, 2> features, Array<const int64_t, 2> segments, Array<const int64_t, 2> pairs, uint32_t mask,
               bool with_sign, int64_t row, Array<int64_t> offsets, Array<int32_t> indices, Array<float> values) {
  const Feature* own = features_of(features);
  const Segment* spaces = segments_of(segments);
  const auto crossing = pairs_of(pairs, segments.shape[0]);
  const int64_t n = features.shape[0], room = std::min(indices.size(), values.size());
  check_within(spaces, segments.shape[0], n);
  if (row < 0) throw std::invalid_argument("row: expected 0 or more");
  if (row + 1 >= offsets.size()) return false;
  const int64_t at = offsets[row], size = o2::expanded_size(n, spaces, crossing);
  if (at < 0 || size > room - at) return false;
  o2::expand(own, n, spaces, crossing, Entries{indices.data + at, values.data + at, {mask, with_sign}});
  offsets[row + 1] = at + size;
  return true;
}

Sparse expanded_rows(Array<const uint32_t, 2> features, Array<const int64_t> ends, Array<const int64_t, 3> segments,
                     Array<const int64_t, 2> pairs, uint32_t mask, bool with_sign) {
  const Feature* own = features_of(features);
  const int64_t n = ends.size() - 1, spaces = segments.shape[1];
  const auto crossing = pairs_of(pairs, spaces);
  if (n < 0 || segments.shape[0] != n || segments.shape[2] != 2) throw std::invalid_argument("segments: expected some for each row");
  check_offsets(ends, features.shape[0]);
  NewArray<int64_t> offsets({n + 1});
  auto of_row = [&](int64_t r) { return reinterpret_cast<const Segment*>(segments.data) + r * spaces; };
  offsets.view[0] = 0;
  for (int64_t r = 0; r < n; r++) {
    check_within(of_row(r), spaces, ends[r + 1] - ends[r]);
    offsets.view[r + 1] = offsets.view[r] + o2::expanded_size(ends[r + 1] - ends[r], of_row(r), crossing);
  }
  NewArray<int32_t> indices({offsets.view[n]});
  NewArray<float> values({offsets.view[n]});
  nb::gil_scoped_release release;
  for (int64_t r = 0; r < n; r++) {
    const int64_t at = offsets.view[r];
    o2::expand(own + ends[r], ends[r + 1] - ends[r], of_row(r), crossing,
               Entries{indices.view.data + at, values.view.data + at, {mask, with_sign}});
  }
  return {std::move(indices), std::move(values), std::move(offsets)};
}

// Some of the rows, in the order of their places.
Sparse rows_at(Array<const int32_t> indices, Array<const float> values, Array<const int64_t> offsets, Array<const int64_t> places) {
  const int64_t n = offsets.size() - 1, total = std::min(indices.size(), values.size());
  NewArray<int64_t> ends({places.size() + 1});
  int64_t at = ends.view[0] = 0;
  for (int64_t r = 0; r < places.size(); r++) {
    const int64_t row = places[r];
    if (row < 0 || row >= n || offsets[row] < 0 || offsets[row] > offsets[row + 1] || offsets[row + 1] > total)
      throw std::invalid_argument("rows: found one beyond the entries");
    ends.view[r + 1] = at += offsets[row + 1] - offsets[row];
  }
  NewArray<int32_t> some_indices({at});
  NewArray<float> some_values({at});
  {
    const nb::gil_scoped_release release;
    for (int64_t r = 0; r < places.size(); r++) {
      const int64_t from = offsets[places[r]], to = ends.view[r], size = ends.view[r + 1] - to;
      std::copy_n(indices.data + from, size, some_indices.view.data + to);
      std::copy_n(values.data + from, size, some_values.view.data + to);
    }
  }
  return {std::move(some_indices), std::move(some_values), std::move(ends)};
}

// -- action sets: hashes and values in columns; shared [n, 2] and rows [total, 2] are stretches of them

NewArray<int64_t> set_offsets(Array<const int64_t, 2> shared, Array<const int64_t, 2> rows, Array<const int64_t> offsets) {
  const Segment *common = segments_of(shared), *own = segments_of(rows);
  if (offsets.size() != shared.shape[0] + 1) throw std::invalid_argument("offsets: expected one more than sets");
  check_offsets(offsets, rows.shape[0]);
  NewArray<int64_t> made({rows.shape[0] + 1});
  int64_t at = made.view[0] = 0;
  nb::gil_scoped_release release;
  for (int64_t s = 0; s + 1 < offsets.size(); s++)
    for (int64_t k = offsets[s]; k < offsets[s + 1]; k++) {
      at += common[s].size() + own[k].size() * (1 + common[s].size());
      made.view[k + 1] = at;
    }
  return made;
}

// Whether nothing is shared, and the features of all rows are all of them, one row after the other.
bool follow_each_other(Array<const int64_t, 2> shared, Array<const int64_t, 2> rows, int64_t features) {
  const Segment *common = segments_of(shared), *own = segments_of(rows);
  const nb::gil_scoped_release release;
  bool all = true;
  int64_t at = 0;
  for (int64_t s = 0; s < shared.shape[0]; s++) all &= common[s].first == common[s].last;
  for (int64_t k = 0; k < rows.shape[0]; k++) all &= own[k].first == at && own[k].last >= at, at = own[k].last;
  return all && at == features;
}

void fill_sets(Array<const uint32_t> hashes, Array<const float> values, Array<const int64_t, 2> shared, Array<const int64_t, 2> rows,
               Array<const int64_t> offsets, uint32_t mask, bool with_sign, int64_t first, int64_t last,
               Array<const int64_t> out_offsets, Array<int32_t> out_indices, Array<float> out_values) {
  const Segment *common = segments_of(shared), *own = segments_of(rows);
  const Features all{hashes.data, values.data, std::min(hashes.size(), values.size())};
  const int64_t room = std::min(out_indices.size(), out_values.size());
  if (first < 0 || first > last || last > shared.shape[0] || offsets.size() != shared.shape[0] + 1)
    throw std::invalid_argument("sets: found some beyond the last");
  if (out_offsets.size() != rows.shape[0] + 1) throw std::invalid_argument("out_offsets: expected one more than rows");
  check_offsets(offsets, rows.shape[0]);
  nb::gil_scoped_release release;
  for (int64_t s = first; s < last; s++) {
    check_within(common + s, 1, all.n);
    for (int64_t k = offsets[s]; k < offsets[s + 1]; k++) {
      check_within(own + k, 1, all.n);
      const int64_t at = out_offsets[k], size = common[s].size() + own[k].size() * (1 + common[s].size());
      if (at < 0 || size > room - at) throw std::invalid_argument("out_offsets: found a row beyond the outputs");
      o2::expand_action(all.part(own[k]), all.part(common[s]),
                        Entries{out_indices.data + at, out_values.data + at, {mask, with_sign}});
    }
  }
}

}  // namespace

void bind_expanding(nb::module_& m) {
  m.def("crossed_hash", &o2::crossed_hash, nb::arg("first"), nb::arg("second"),
        "Return the hash of the product of two features; the order matters.");
  m.def("write_row", &write_row, nb::arg("features"), nb::arg("segments"), nb::arg("pairs"), nb::arg("mask"), nb::arg("with_sign"),
        nb::arg("row"), nb::arg("offsets"), nb::arg("indices"), nb::arg("values"),
        "Write features [n, 2] (hash and value) and their products as row `row` of sparse columns. Returns False, and writes "
        "nothing, if there is no room.");
  m.def("expanded_rows", &expanded_rows, nb::arg("features"), nb::arg("ends"), nb::arg("segments"), nb::arg("pairs"), nb::arg("mask"),
        nb::arg("with_sign"),
        "Return indices, values and offsets of rows features[ends[r] : ends[r + 1]] with products. segments [n, spaces, 2]");
  m.def("rows_at", &rows_at, nb::arg("indices"), nb::arg("values"), nb::arg("offsets"), nb::arg("places"),
        "Return indices, values and offsets of some sparse rows, in the order of their places.");
  m.def("set_offsets", &set_offsets, nb::arg("shared"), nb::arg("rows"), nb::arg("offsets"),
        "Return the offsets of the entries of each action of sets: own features, shared ones, and the products of both.");
  m.def("follow_each_other", &follow_each_other, nb::arg("shared"), nb::arg("rows"), nb::arg("features"),
        "Return whether sets share nothing, and the features of their rows are all, one row after the other.");
  m.def("fill_sets", &fill_sets, nb::arg("hashes"), nb::arg("values"), nb::arg("shared"), nb::arg("rows"), nb::arg("offsets"),
        nb::arg("mask"), nb::arg("with_sign"), nb::arg("first"), nb::arg("last"), nb::arg("out_offsets"), nb::arg("out_indices"),
        nb::arg("out_values"), "Write the entries of sets first : last, with offsets from `set_offsets`.");
}
