#include "core/hashed_scores.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <vector>

#include "formats/json.hpp"
#include "formats/json_sets.hpp"
#include "python/acting_numbers.hpp"
#include "python/hashed.hpp"
#include "python/module.hpp"
#include "python/uncertainty.hpp"

namespace nb = nanobind;
using o2::Array;

namespace {

enum { UNUSUAL, WEIGHED, TOO_LARGE };  // see `policy_of_text`

void require(bool fits, const char* what) {
  if (!fits) throw std::invalid_argument(what);
}

// Weights of all members, side by side. The arrays are Python's; they live as long as it.
class HashedMembers {
 public:
  HashedMembers(nb::object slot_of, nb::object scale, nb::object W, int64_t members, const o2::HeldUncertainty* unsure)
      : kept_(nb::make_tuple(slot_of, scale, W)), uncertainty_(unsure ? unsure->held : nullptr), members_(members) {
    const auto slots = nb::cast<Array<const int32_t>>(slot_of, false);
    const auto of_slots = nb::cast<Array<const float, 2>>(scale, false);
    const auto weights = nb::cast<Array<const double, 2>>(W, false);
    require(of_slots.shape[1] == 2, "HashedMembers: expected shift and factor of each slot");
    require(members > 0 && weights.shape[1] > 0 && weights.shape[1] % members == 0,
            "HashedMembers: expected as many columns of each member");
    require(!uncertainty_ || uncertainty_->n_actions() == weights.shape[1] / members, "HashedMembers: found the uncertainty of other actions");
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
    const auto [action, probability] = o2::decide_row(weights_, members_, row, o2::acting_of(acting, members_, K), uncertainty_.get(), uniform);
    return {action, probability};
  }

  std::tuple<int64_t, double> decide_set(Array<const int32_t> indices, Array<const float> values, Array<const int64_t> offsets,
                                         Array<const double> acting, double uniform) const {
    require(members_ == weights_.columns && values.size() == indices.size(), "HashedMembers: found another kind of rows");
    const int64_t K = offsets.size() - 1;
    require(K > 0 && offsets[0] >= 0 && offsets[K] <= indices.size(), "HashedMembers: offsets beyond the entries");
    for (int64_t k = 0; k < K; k++) require(offsets[k] <= offsets[k + 1], "HashedMembers: expected increasing offsets");
    const o2::SparseRows rows = checked(indices.span(), values.data, offsets.span());
    const auto [action, probability] = o2::decide_set(weights_, rows, o2::acting_of(acting, members_, K), uncertainty_.get(), uniform);
    return {action, probability};
  }

  int policy_of_text(nb::bytes text, uint32_t mask, bool with_sign, Array<const double> acting, int64_t most,
                     Array<double> out) const {
    require(members_ == weights_.columns, "HashedMembers: found another kind of rows");
    const char *const begin = text.c_str(), *const end = begin + text.size();
    o2::FeatureLists lists;
    const char* const p = o2::hash_set(o2::json::after_space(begin, end), end, lists);
    const int64_t K = out.size();
    if (!p || o2::json::after_space(p, end) != end || lists.ends.size() != K + 1) return UNUSUAL;
    const o2::Features features{lists.hashes.span().data(), lists.values.span().data(), lists.hashes.size()};
    const auto list = [&](int64_t i) { return features.part({i ? lists.ends[i - 1] : 0, lists.ends[i]}); };
    const o2::Features shared = list(0);
    std::vector<int64_t> offsets{0};
    for (int64_t k = 1; k <= K; k++) offsets.push_back(offsets.back() + list(k).n + shared.n + list(k).n * shared.n);
    if (offsets[K] > most) return TOO_LARGE;
    std::vector<int32_t> indices(offsets[K]);
    std::vector<float> values(offsets[K]);
    for (int64_t k = 0; k < K; k++)
      o2::expand_action(list(k + 1), shared, o2::Entries{indices.data() + offsets[k], values.data() + offsets[k], {mask, with_sign}});
    o2::set_policy(weights_, checked(indices, values.data(), offsets), o2::acting_of(acting, members_, K), uncertainty_.get(), out.data);
    return WEIGHED;
  }

 private:
  nb::object kept_;
  std::shared_ptr<const o2::Uncertainty> uncertainty_;  // of its predictions; null: not known
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
      .def(nb::init<nb::object, nb::object, nb::object, int64_t, const o2::HeldUncertainty*>(), nb::arg("slot_of"), nb::arg("scale"), nb::arg("W"),
           nb::arg("members"), nb::arg("uncertainty") = nb::none(), "W [slots, members · K]: K = 1 for action sets")
      .def("decide", &HashedMembers::decide, nb::arg("features"), nb::arg("segments"), nb::arg("pairs"), nb::arg("mask"),
           nb::arg("with_sign"), nb::arg("acting"), nb::arg("uniform"),
           "Return an action for a context from `DictionaryReader.entry`, and its probability.")
      .def("decide_set", &HashedMembers::decide_set, nb::arg("indices"), nb::arg("values"), nb::arg("offsets"),
           nb::arg("acting"), nb::arg("uniform"), "Return one of the rows of an action set, and its probability.")
      .def("policy_of_text", &HashedMembers::policy_of_text, nb::arg("text"), nb::arg("mask"), nb::arg("with_sign"),
           nb::arg("acting"), nb::arg("most"), nb::arg("out"),
           "Write the acting policy of an action set in JSON to `out` [K], and return 1. Write nothing, and return 0 if the"
           " text is unusual or does not have K actions, 2 if it has more than `most` features, products included.");
}
