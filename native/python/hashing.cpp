#include "core/hashing.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>

#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

constexpr const char* BEYOND = "indices: found one beyond the table of slots, or without moments";

void check_indices(std::span<const int32_t> indices, int64_t size) {
  for (const int32_t index : indices)
    if (index < 0 || index >= size) throw std::invalid_argument(BEYOND);
}

int64_t number_features(Array<const int32_t> indices, Array<int32_t> slot_of, int64_t slots) {
  const int64_t found = o2::number_features(indices.span(), slot_of.span(), slots);
  if (found < 0) throw std::invalid_argument(BEYOND);
  return found;
}

void scale_features(Array<const int32_t> indices, Array<const float> values, Array<const int32_t> slot_of, Array<int32_t> feature,
                    Array<double> count, Array<double> mean, Array<double> squares, Array<bool> plain, Array<float, 2> scale) {
  const int64_t slots = feature.size();
  if (values.size() != indices.size()) throw std::invalid_argument("values: expected as many as indices");
  for (const int64_t size : {count.size(), mean.size(), squares.size(), plain.size(), scale.shape[0]})
    if (size != slots || scale.shape[1] != 2) throw std::invalid_argument("moments: expected one of each slot");
  const o2::SlotMoments moments{feature.data, count.data, mean.data, squares.data, plain.data, scale.data};
  if (!o2::scale_features(indices.span(), values.data, slot_of.span(), slots, moments)) throw std::invalid_argument(BEYOND);
}

std::tuple<NewArray<int32_t>, NewArray<float>, NewArray<int64_t>> to_slots(Array<const int32_t> indices, Array<const float> values,
                                                                           Array<const int64_t> offsets, Array<const int32_t> slot_of,
                                                                           Array<const float, 2> scale) {
  if (values.size() != indices.size()) throw std::invalid_argument("values: expected as many as indices");
  if (scale.shape[1] != 2 || offsets.size() == 0) throw std::invalid_argument("scale: expected shift and factor of each slot");
  check_indices(indices.span(), slot_of.size());
  int64_t before = 0;
  for (const int64_t offset : offsets.span()) {
    if (offset < before || offset > indices.size()) throw std::invalid_argument("offsets: expected increasing ones, within the data");
    before = offset;
  }
  const int64_t rows = offsets.size() - 1, most = offsets[rows] - offsets[0] + rows;
  NewArray<int32_t> slots({most});
  NewArray<float> scaled({most});
  NewArray<int64_t> ends({rows + 1});
  int64_t size;
  {
    nb::gil_scoped_release release;
    size = o2::to_slots({indices.span(), values.data, offsets.span()}, slot_of.data, scale.data, scale.shape[0], slots.view.data,
                        scaled.view.data, ends.view.data);
  }
  if (size < most) {  // features without a slot
    slots.object = slots.object[nb::slice(nb::int_(0), nb::int_(size), nb::int_(1))];
    scaled.object = scaled.object[nb::slice(nb::int_(0), nb::int_(size), nb::int_(1))];
  }
  return {std::move(slots), std::move(scaled), std::move(ends)};
}

}  // namespace

void bind_hashing(nb::module_& m) {
  m.def("number_features", &number_features, nb::arg("indices"), nb::arg("slot_of"), nb::arg("slots"),
        "Assign slots to new features. Returns the number of slots.");
  m.def("scale_features", &scale_features, nb::arg("indices"), nb::arg("values"), nb::arg("slot_of"), nb::arg("feature"),
        nb::arg("count"), nb::arg("mean"), nb::arg("squares"), nb::arg("plain"), nb::arg("scale"),
        "Update the running moments of each slot, over the rows that have it, and its scale.");
  m.def("to_slots", &to_slots, nb::arg("indices"), nb::arg("values"), nb::arg("offsets"), nb::arg("slot_of"), nb::arg("scale"),
        "Return slots, scaled values and offsets of rows; each starts with the constant. Features without a slot are dropped.");
}
