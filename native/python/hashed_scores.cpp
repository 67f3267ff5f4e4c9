#include "core/hashed_scores.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <vector>

#include "python/acting_numbers.hpp"
#include "python/hashed.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array;

namespace {

void require(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(what);
}

// Weights of all members, side by side. The arrays are Python's; they live as long as it.
class HashedMembers {
 public:
  HashedMembers(nb::object slot_of, nb::object scale, nb::object W, int64_t members)
      : kept_(nb::make_tuple(slot_of, scale, W)), members_(members) {
    const auto slots = nb::cast<Array<const int32_t>>(slot_of, false);
    const auto of_slots = nb::cast<Array<const float, 2>>(scale, false);
    const auto weights = nb::cast<Array<const double, 2>>(W, false);
    require(of_slots.shape[1] == 2, "HashedMembers: expected shift and factor of each slot");
    require(members > 0 && weights.shape[1] > 0 && weights.shape[1] % members == 0,
            "HashedMembers: expected as many columns of each member");
    weights_ = {slots.span(), of_slots.data, of_slots.shape[0], weights.data, weights.shape[0], weights.shape[1]};
  }

  std::tuple<int64_t, double> decide(Array<const uint32_t, 2> features, Array<const int64_t, 2> segments,
                                     Array<const int64_t, 2> pairs, uint32_t mask, bool with_sign, Array<const double> acting,
                                     double uniform) const {
    const o2::Feature* own = o2::features_of(features);
    const o2::Segment* spaces = o2::segments_of(segments);
    const auto crossing = o2::pairs_of(pairs, segments.shape[0]);
    const int64_t n = features.shape[0];
    o2::check_within(spaces, segments.shape[0], n);
    const int64_t size = o2::expanded_size(n, spaces, crossing);
    std::vector<int32_t> indices(size);
    std::vector<float> values(size);
    o2::expand(own, n, spaces, crossing, o2::Entries{indices.data(), values.data(), {mask, with_sign}});
    const std::vector<int64_t> offsets{0, size};
    const o2::SparseRows row = checked(indices, values.data(), offsets);
    const int64_t K = weights_.columns / members_;
    const auto [action, probability] = o2::decide_row(weights_, members_, row, o2::acting_of(acting, members_, K), uniform);
    return {action, probability};
  }

  std::tuple<int64_t, double> decide_set(Array<const int32_t> indices, Array<const float> values, Array<const int64_t> offsets,
                                         Array<const double> acting, double uniform) const {
    require(members_ == weights_.columns && values.size() == indices.size(), "HashedMembers: found another kind of rows");
    const int64_t K = offsets.size() - 1;
    require(K > 0 && offsets[0] >= 0 && offsets[K] <= indices.size(), "HashedMembers: offsets beyond the entries");
    for (int64_t k = 0; k < K; k++) require(offsets[k] <= offsets[k + 1], "HashedMembers: expected increasing offsets");
    const o2::SparseRows rows = checked(indices.span(), values.data, offsets.span());
    const auto [action, probability] = o2::decide_set(weights_, rows, o2::acting_of(acting, members_, K), uniform);
    return {action, probability};
  }

 private:
  nb::object kept_;
  int64_t members_;
  o2::HashedWeights weights_;

  o2::SparseRows checked(std::span<const int32_t> indices, const float* values, std::span<const int64_t> offsets) const {
    const auto size = static_cast<int64_t>(weights_.slot_of.size());
    for (const int32_t index : indices) require(index >= 0 && index < size, "HashedMembers: found an index beyond the table of slots");
    return {indices, values, offsets};
  }
};

}  // namespace

void bind_hashed_scores(nb::module_& m) {
  nb::class_<HashedMembers>(m, "HashedMembers", "Members that are linear in hashed features, and their decisions.")
      .def(nb::init<nb::object, nb::object, nb::object, int64_t>(), nb::arg("slot_of"), nb::arg("scale"), nb::arg("W"),
           nb::arg("members"), "W [slots, members · K]: K = 1 for action sets")
      .def("decide", &HashedMembers::decide, nb::arg("features"), nb::arg("segments"), nb::arg("pairs"), nb::arg("mask"),
           nb::arg("with_sign"), nb::arg("acting"), nb::arg("uniform"),
           "Return an action for a context from `DictionaryReader.entry`, and its probability.")
      .def("decide_set", &HashedMembers::decide_set, nb::arg("indices"), nb::arg("values"), nb::arg("offsets"),
           nb::arg("acting"), nb::arg("uniform"), "Return one of the rows of an action set, and its probability.");
}
