// Dictionaries of features, read through the C API: names are hashed as they are read, and never built but to note them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <charconv>
#include <optional>
#include <stdexcept>
#include <vector>

#include "core/crc.hpp"
#include "core/expanding.hpp"
#include "core/names.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::Feature, o2::FeatureNames, o2::NewArray, o2::Segment;

namespace {

// A key at a position in the dictionaries, or the index of an element of a list.
struct Place {
  const Place* above;
  std::string_view key;
  int64_t index = -1;
  uint32_t state;   // of the hash of its path: `user.age`, `tags[1]`
  bool named = true;  // whether the path has any characters

  std::string path() const {
    std::string text = above ? above->path() : "";
    if (index >= 0) return text + "[" + std::to_string(index) + "]";
    if (above && above->named) text += ".";
    return text.append(key);
  }
};

const Place ROOT{nullptr, "", -1, o2::NO_NAME, false};

Place below(const Place& above, std::string_view key) {
  const uint32_t state = above.named ? o2::crc(above.state, '.') : above.state;
  return {&above, key, -1, o2::crc(state, key), above.named || !key.empty()};
}

Place element(const Place& list, int64_t index) {
  char text[24] = "[";
  char* end = std::to_chars(text + 1, text + 22, index).ptr;
  *end++ = ']';
  return {&list, "", index, o2::crc(list.state, {text, static_cast<size_t>(end - text)}), true};
}

// The characters of a string, in UTF-8; half a surrogate pair is written as it is.
struct Text {
  nb::object kept;
  std::string_view view;

  explicit Text(PyObject* text) {
    Py_ssize_t n;
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
      view = {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), static_cast<size_t>(PyUnicode_GET_LENGTH(text))};
    } else if (const char* data = PyUnicode_AsUTF8AndSize(text, &n)) {
      view = {data, static_cast<size_t>(n)};
    } else {
      PyErr_Clear();
      kept = nb::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
      if (!kept.is_valid()) throw nb::python_error();
      view = {PyBytes_AS_STRING(kept.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(kept.ptr()))};
    }
  }
};

struct Deeper {
  Deeper() {
    if (Py_EnterRecursiveCall(" while a context is read")) throw nb::python_error();
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
  Deeper(const Deeper&) = delete;
};

using Spaces = nb::typed<nb::tuple, nb::str, nb::ellipsis>;
using Plain = nb::typed<nb::callable, nb::object(nb::object, int)>;  // of a context and its number, `read_dictionary`
using Contexts = nb::typed<nb::list, nb::any>;

// Reads dictionaries. Its functions return false at a value of an unusual type, which `plain` converts or refuses.
class Reading {
 public:
  std::vector<Feature> features;

  Reading(FeatureNames& names, Spaces spaces, Plain plain) : names(names), spaces(spaces), plain(plain) {
    names.forget_if_too_many();
  }

  // Read a context, or an action. number: for `plain`. segments: of the namespaces, [spaces]
  void read(nb::handle context, int64_t number, const Place& place, Segment* segments) {
    const size_t first = features.size();
    if (PyDict_CheckExact(context.ptr()) && dictionary(place, context.ptr(), segments, first)) return;
    features.resize(first);
    const nb::object converted = plain(context, number);
    std::fill_n(segments, spaces.size(), Segment{0, 0});
    if (!PyDict_CheckExact(converted.ptr()) || !dictionary(place, converted.ptr(), segments, first))
      throw nb::type_error("plain: expected a dictionary of plain values");
  }

  NewArray<uint32_t, 2> all() const {
    NewArray<uint32_t, 2> made({static_cast<int64_t>(features.size()), 2});
    std::copy(features.begin(), features.end(), reinterpret_cast<Feature*>(made.view.data));
    return made;
  }

 private:
  FeatureNames& names;
  const nb::tuple spaces;
  const nb::callable plain;

  bool dictionary(const Place& place, PyObject* mapping, Segment* segments = nullptr, size_t first = 0) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(mapping, &at, &key, &value)) {
      if (!PyUnicode_Check(key)) return false;
      const Text text(key);
      const size_t begin = features.size();
      if (!one(below(place, text.view), value)) return false;
      if (segments)
        for (size_t i = 0; i < spaces.size(); i++)
          if (PyUnicode_Compare(key, spaces[i].ptr()) == 0)
            segments[i] = {static_cast<int64_t>(begin - first), static_cast<int64_t>(features.size() - first)};
    }
    return true;
  }

  bool one(const Place& place, PyObject* value) {
    if (PyUnicode_Check(value)) return word(place, Text(value).view);
    if (PyFloat_Check(value)) return number(place, PyFloat_AS_DOUBLE(value));
    if (PyBool_Check(value)) return word(place, value == Py_True ? "true" : "false");
    if (PyLong_Check(value)) return whole(place, value);
    if (value == Py_None) return true;
    if (PyDict_CheckExact(value)) {
      const Deeper deeper;
      return dictionary(place, value);
    }
    if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) return list(place, value);
    if (PyArray_CheckExact(value)) return array(place, reinterpret_cast<PyArrayObject*>(value));
    return false;
  }

  bool list(const Place& place, PyObject* values) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(values);
    for (Py_ssize_t i = 0; i < n; i++) {
      PyObject* value = PySequence_Fast_GET_ITEM(values, i);
      if (PyList_CheckExact(value) || PyTuple_CheckExact(value) || PyArray_CheckExact(value)) return false;
      const bool numeric = PyFloat_Check(value) || (PyLong_Check(value) && !PyBool_Check(value));
      if (!one(numeric ? element(place, i) : place, value)) return false;  // others have the name of the list
    }
    return true;
  }

  bool array(const Place& place, PyArrayObject* values) {
    const int type = PyArray_TYPE(values);
    if (PyArray_NDIM(values) != 1 || !PyArray_ISCARRAY_RO(values) || (type != NPY_FLOAT32 && type != NPY_FLOAT64)) return false;
    const void* data = PyArray_DATA(values);
    for (npy_intp i = 0; i < PyArray_DIM(values, 0); i++) {
      const double value = type == NPY_FLOAT32 ? static_cast<const float*>(data)[i] : static_cast<const double*>(data)[i];
      if (!number(element(place, i), value)) return false;
    }
    return true;
  }

  bool word(const Place& place, std::string_view text) {
    add(o2::mixed(o2::crc(o2::crc(place.state, '='), text)), 1, place, &text);
    return true;
  }

  bool whole(const Place& place, PyObject* value) {
    int overflow;
    const long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 && number(place, static_cast<double>(found));
  }

  bool number(const Place& place, double value) {
    constexpr double LARGEST = std::numeric_limits<float>::max();
    if (!(value >= -LARGEST && value <= LARGEST)) return false;
    add(o2::mixed(place.state), static_cast<float>(value), place, nullptr);
    return true;
  }

  void add(uint32_t hash, float value, const Place& place, const std::string_view* word) {
    features.push_back({hash, value});
    if (names.has(hash)) return;
    std::string text = place.path();
    const auto path = static_cast<int64_t>(text.size());
    if (word) text.append("=").append(*word);
    names.add({hash, path, std::move(text)});
  }
};

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
  const Place below_shared = below(ROOT, "shared");
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

// Of nested dictionaries; None if they contain other values that may change.
nb::object copied(nb::handle mapping) {
  if (!PyDict_CheckExact(mapping.ptr())) return nb::none();
  const Deeper deeper;
  nb::object copy = nb::steal(PyDict_Copy(mapping.ptr()));
  if (!copy.is_valid()) throw nb::python_error();
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(copy.ptr(), &at, &key, &value)) {
    if (PyUnicode_CheckExact(value) || PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) || value == Py_None)
      continue;
    const nb::object inner = copied(value);
    if (inner.is_none()) return inner;
    if (PyDict_SetItem(copy.ptr(), key, inner.ptr())) throw nb::python_error();  // of a known key: the order stays
  }
  return copy;
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
  m.def("copied", &copied, nb::arg("context"), nb::sig("def copied(context: object) -> dict[Any, Any] | None"),
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
