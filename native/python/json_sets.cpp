#include "formats/json_sets.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "formats/json.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"
#include "python/texts.hpp"

namespace nb = nanobind;
using o2::FeatureLists, o2::NewArray, o2::Texts;

namespace {

using Sets = std::tuple<NewArray<uint32_t>, NewArray<float>, NewArray<int64_t, 2>, NewArray<int64_t, 2>, NewArray<int64_t>>;

std::optional<Sets> json_sets(nb::typed<nb::sequence, nb::bytes> texts) {
  const Texts all(texts);
  FeatureLists lists;
  std::vector<int64_t> firsts;  // the first list of each set, the shared one
  {
    nb::gil_scoped_release others_run;
    for (std::string_view text : all) {
      const char* const end = text.data() + text.size();
      firsts.push_back(lists.ends.size());
      const char* const p = o2::hash_set(o2::json::after_space(text.data(), end), end, lists);
      if (!p || o2::json::after_space(p, end) != end) return std::nullopt;
    }
  }
  const int64_t n = all.size(), total = lists.ends.size();
  NewArray<int64_t, 2> shared({n, 2}), rows({total - n, 2});
  NewArray<int64_t> offsets({n + 1});
  int64_t s = 0;
  for (int64_t list = 0; list < total; list++) {
    const bool first = s < n && firsts[s] == list;
    if (first) offsets.view[s] = list - s;
    int64_t* out = first ? shared.view.data + 2 * s++ : rows.view.data + 2 * (list - s);
    out[0] = list ? lists.ends[list - 1] : 0;
    out[1] = lists.ends[list];
  }
  offsets.view[n] = total - n;
  return Sets{NewArray<uint32_t>(lists.hashes.span()), NewArray<float>(lists.values.span()), std::move(shared),
              std::move(rows), std::move(offsets)};
}

NewArray<int64_t> set_sizes(nb::typed<nb::sequence, nb::bytes> texts) {
  const Texts all(texts);
  NewArray<int64_t> sizes({all.size()});
  nb::gil_scoped_release others_run;
  int64_t s = 0;
  for (std::string_view text : all) sizes.view[s++] = o2::count_actions(text.data(), text.data() + text.size());
  return sizes;
}

}  // namespace

void bind_json_sets(nb::module_& m) {
  m.attr("DEEPEST_JSON") = o2::json::DEEPEST;  // nested objects and lists
  m.def("json_sets", &json_sets, nb::arg("texts"),
        "Hash the features of contexts with `_multi`, bytes: hashes, values, and the places `shared` [n, 2], `rows`\n"
        "[sum of K, 2] and `offsets` [n + 1] of `HashedSets`. None if one of them is unusual.");
  m.def("set_sizes", &set_sizes, nb::arg("texts"),
        "Return the number of actions of each context with `_multi`; 0 if unknown, [n].");
}
