// Dictionaries of features: see `reading.hpp`.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <vector>

#include "python/module.hpp"
#include "python/reading.hpp"

namespace nb = nanobind;
using o2::Array, o2::Contexts, o2::Feature, o2::FeatureNames, o2::NewArray, o2::Place, o2::Plain, o2::Reading, o2::ROOT, o2::Segment, o2::Spaces;

namespace {

Segment* as_segments(int64_t* data) { return reinterpret_cast<Segment*>(data); }

NewArray<uint32_t, 2> read_dictionary(nb::handle context, Spaces spaces, Array<int64_t, 2> segments, FeatureNames& names,
                                      Plain plain) {
  if (segments.shape[0] < static_cast<int64_t>(spaces.size()) || segments.shape[1] != 2)
    throw std::invalid_argument("segments: expected one of each namespace");
  Reading reading(names, spaces, plain);
  reading.read(context, 0, ROOT, as_segments(segments.data));
  return reading.all();
}

std::tuple<NewArray<uint32_t, 2>, NewArray<int64_t>> read_dictionaries(Contexts contexts, Spaces spaces, Array<int64_t, 3> segments,
                                                                       FeatureNames& names, Plain plain) {
  const int64_t n = segments.shape[0], width = segments.shape[1];
  if (n != static_cast<int64_t>(contexts.size()) || width < static_cast<int64_t>(spaces.size()) || segments.shape[2] != 2)
    throw std::invalid_argument("segments: expected one of each namespace for each context");
  Reading reading(names, spaces, plain);
  NewArray<int64_t> ends({n + 1});
  ends.view[0] = 0;
  for (int64_t row = 0; row < n; row++) {
    const nb::object context = contexts[row];  // `plain` may change the list
    reading.read(context, row, ROOT, as_segments(segments.data) + row * width);
    ends.view[row + 1] = static_cast<int64_t>(reading.features.size());
  }
  return {reading.all(), std::move(ends)};
}

// For each action its own features, then the shared ones. Without namespaces, segment 0 is its own, segment 1 the shared.
std::tuple<NewArray<uint32_t, 2>, NewArray<int64_t>> read_set(nb::handle shared, Contexts actions, Spaces spaces,
                                                              Array<int64_t, 3> segments, FeatureNames& names, Plain plain) {
  const int64_t K = segments.shape[0], width = segments.shape[1], S = static_cast<int64_t>(spaces.size());
  if (K != static_cast<int64_t>(actions.size()) || width < std::max<int64_t>(S, S == 0 ? 2 : 1) || segments.shape[2] != 2)
    throw std::invalid_argument("segments: expected one of each namespace for each action");
  const Place below_shared = o2::below(ROOT, "shared");
  std::vector<Segment> of_shared(S);
  Reading reading(names, spaces, plain);
  reading.read(shared, -1, below_shared, of_shared.data());
  const std::vector<Feature> common = std::move(reading.features);
  reading.features.clear();
  NewArray<int64_t> ends({K + 1});
  ends.view[0] = 0;
  for (int64_t k = 0; k < K; k++) {
    Segment* own = as_segments(segments.data) + k * width;
    const nb::object action = actions[k];
    const auto first = static_cast<int64_t>(reading.features.size());
    reading.read(action, k, ROOT, own);
    const int64_t size = static_cast<int64_t>(reading.features.size()) - first, all = size + static_cast<int64_t>(common.size());
    reading.features.insert(reading.features.end(), common.begin(), common.end());
    ends.view[k + 1] = first + all;
    if (S == 0) own[0] = {0, size}, own[1] = {size, all};
    for (int64_t i = 0; i < S; i++)
      if (own[i].last == 0) own[i] = {of_shared[i].first + size, of_shared[i].last + size};  // the action does not have it
  }
  return {reading.all(), std::move(ends)};
}

nb::dict words(const FeatureNames& names) {
  nb::dict found;
  for (const auto& [hash, path, text] : names.all()) {
    auto part = [](std::string_view text) {
      return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass"));
    };
    const std::string_view all = text;
    const bool word = all.size() > static_cast<size_t>(path);
    found[nb::int_(hash)] = nb::make_tuple(part(all.substr(0, path)), word ? part(all.substr(path + 1)) : nb::none());
  }
  return found;
}

bool text(nb::str string) { return o2::is_text(o2::Text(string.ptr()).view); }

nb::typed<nb::tuple, nb::any, nb::ellipsis> state_of(const FeatureNames& names) {
  nb::list all;
  for (const auto& [hash, path, text] : names.all()) all.append(nb::make_tuple(hash, path, nb::bytes(text.data(), text.size())));
  return nb::make_tuple(names.limit, all);
}

void restore(FeatureNames& names, nb::typed<nb::tuple, nb::any, nb::ellipsis> state) {
  new (&names) FeatureNames(nb::cast<size_t>(state[0]));
  for (nb::handle one : nb::cast<nb::list>(state[1])) {
    const auto bytes = nb::cast<nb::bytes>(one[2]);
    names.add({nb::cast<uint32_t>(one[0]), nb::cast<int64_t>(one[1]), {bytes.c_str(), bytes.size()}});
  }
}

}  // namespace

void bind_dictionaries(nb::module_& m) {
  nb::class_<FeatureNames>(m, "FeatureNames", "Names of hashed features, as readers of dictionaries note them.")
      .def(nb::init<size_t>(), nb::arg("limit"))
      .def("words", &words, nb::sig("def words(self) -> dict[int, tuple[str, str | None]]"),
           "Return the features by hash: their path, and the string; None for numbers.")
      .def("__getstate__", &state_of)
      .def("__setstate__", &restore);
  m.def("is_text", &text, nb::arg("string"), "Return whether a string is a text: at least three words with blanks between them.");
  m.def("copied", &o2::copied, nb::arg("context"), nb::sig("def copied(context: object) -> dict[Any, Any] | None"),
        "Return a deep copy of nested dictionaries; None if they contain other values that may change.");
  m.def("read_dictionary", &read_dictionary, nb::arg("context"), nb::arg("spaces"), nb::arg("segments"), nb::arg("names"),
        nb::arg("plain"),
        "Return the features of a dictionary: hash and value, [n, 2]. Writes the segments of the namespaces `spaces`. "
        "plain(context, 0) makes a dictionary of plain values of an unusual context, or raises what is wrong.");
  m.def("read_dictionaries", &read_dictionaries, nb::arg("contexts"), nb::arg("spaces"), nb::arg("segments"), nb::arg("names"),
        nb::arg("plain"), "Return the features of dictionaries, and the end of each: `read_dictionary` of all. plain(context, row)");
  m.def("read_set", &read_set, nb::arg("shared"), nb::arg("actions"), nb::arg("spaces"), nb::arg("segments"), nb::arg("names"),
        nb::arg("plain"),
        "Return the features of an action set, and the end of each action: its own, then the shared ones. plain(action, k); "
        "plain(shared, -1)");
}
