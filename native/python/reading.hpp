// Dictionaries of features, read through the C API: names are hashed as they are read, and never built but to note them.
#pragma once
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/crc.hpp"
#include "core/expanding.hpp"
#include "core/names.hpp"
#include "core/sentences.hpp"
#include "python/arrays.hpp"

namespace o2 {

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

inline const Place ROOT{nullptr, "", -1, NO_NAME, false};

inline Place below(const Place& above, std::string_view key) {
  const uint32_t state = above.named ? crc(above.state, '.') : above.state;
  return {&above, key, -1, crc(state, key), above.named || !key.empty()};
}

inline Place element(const Place& list, int64_t index) {
  char text[24] = "[";
  char* end = std::to_chars(text + 1, text + 22, index).ptr;
  *end++ = ']';
  return {&list, "", index, crc(list.state, {text, static_cast<size_t>(end - text)}), true};
}

// The characters of a string, in UTF-8; half a surrogate pair is written as it is.
struct Text {
  nanobind::object kept;
  std::string_view view;

  explicit Text(PyObject* text) {
    Py_ssize_t n;
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
      view = {reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), static_cast<size_t>(PyUnicode_GET_LENGTH(text))};
    } else if (const char* data = PyUnicode_AsUTF8AndSize(text, &n)) {
      view = {data, static_cast<size_t>(n)};
    } else {
      PyErr_Clear();
      kept = nanobind::steal(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass"));
      if (!kept.is_valid()) throw nanobind::python_error();
      view = {PyBytes_AS_STRING(kept.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(kept.ptr()))};
    }
  }
};

struct Deeper {
  Deeper() {
    if (Py_EnterRecursiveCall(" while a context is read")) throw nanobind::python_error();
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
  Deeper(const Deeper&) = delete;
};

using Spaces = nanobind::typed<nanobind::tuple, nanobind::str, nanobind::ellipsis>;
using Plain = nanobind::typed<nanobind::callable, nanobind::object(nanobind::object, int)>;  // of a context and its number, `read_dictionary`
using Contexts = nanobind::typed<nanobind::list, nanobind::any>;

// Reads dictionaries of plain values.
class PlainReading {
 public:
  std::vector<Feature> features;

  explicit PlainReading(nanobind::tuple spaces = {}) : spaces(spaces) {}

  // Read a dictionary that is the whole context. False: something in it is unusual.
  bool read(nanobind::handle context, FeatureNames& noted) {
    names = &noted;
    noted.forget_if_too_many();
    features.clear();
    return PyDict_CheckExact(context.ptr()) && dictionary(ROOT, context.ptr());
  }

  // Read what actions share, a dictionary or None, then each of them: dictionaries in a list or a tuple. ends: of the shared
  // features, then of each action's, [K + 1]. False: something in them is unusual, or there are no actions.
  bool read_set(nanobind::handle shared, nanobind::handle actions, FeatureNames& noted, std::vector<int64_t>& ends) {
    static const Place below_shared = below(ROOT, "shared");
    names = &noted;
    noted.forget_if_too_many();
    features.clear(), ends.clear();
    if (!PyList_CheckExact(actions.ptr()) && !PyTuple_CheckExact(actions.ptr())) return false;
    if (!shared.is_none() && (!PyDict_CheckExact(shared.ptr()) || !dictionary(below_shared, shared.ptr()))) return false;
    ends.push_back(static_cast<int64_t>(features.size()));
    const Py_ssize_t K = PySequence_Fast_GET_SIZE(actions.ptr());
    for (Py_ssize_t k = 0; k < K; k++) {
      PyObject* action = PySequence_Fast_GET_ITEM(actions.ptr(), k);
      if (!PyDict_CheckExact(action) || !dictionary(ROOT, action)) return false;
      ends.push_back(static_cast<int64_t>(features.size()));
    }
    return K > 0;
  }

 protected:
  FeatureNames* names = nullptr;  // of the current context
  const nanobind::tuple spaces;

  // False at a value of an unusual type.
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
    if (PyUnicode_Check(value)) return string(place, Text(value).view);
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

  bool string(const Place& place, std::string_view text) {
    if (!is_text(text)) return word(place, text);
    each_word(text, [&](std::string_view each) { word(place, each); });
    return true;
  }

  bool word(const Place& place, std::string_view text) {
    add(mixed(crc(crc(place.state, '='), text)), 1, place, &text);
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
    add(mixed(place.state), static_cast<float>(value), place, nullptr);
    return true;
  }

  void add(uint32_t hash, float value, const Place& place, const std::string_view* word) {
    features.push_back({hash, value});
    if (names->has(hash)) return;
    std::string text = place.path();
    const auto path = static_cast<int64_t>(text.size());
    if (word) text.append("=").append(*word);
    names->add({hash, path, std::move(text)});
  }
};

// Reads dictionaries. A value of an unusual type is converted or refused by `plain`.
class Reading : public PlainReading {
 public:
  Reading(FeatureNames& noted, Spaces spaces, Plain plain) : PlainReading(spaces), plain(plain) {
    names = &noted;
    noted.forget_if_too_many();
  }

  // Read a context, or an action. number: for `plain`. segments: of the namespaces, [spaces]
  void read(nanobind::handle context, int64_t number, const Place& place, Segment* segments) {
    const size_t first = features.size();
    if (PyDict_CheckExact(context.ptr()) && dictionary(place, context.ptr(), segments, first)) return;
    features.resize(first);
    const nanobind::object converted = plain(context, number);
    std::fill_n(segments, spaces.size(), Segment{0, 0});
    if (!PyDict_CheckExact(converted.ptr()) || !dictionary(place, converted.ptr(), segments, first))
      throw nanobind::type_error("plain: expected a dictionary of plain values");
  }

  NewArray<uint32_t, 2> all() const {
    NewArray<uint32_t, 2> made({static_cast<int64_t>(features.size()), 2});
    std::copy(features.begin(), features.end(), reinterpret_cast<Feature*>(made.view.data));
    return made;
  }

 private:
  const nanobind::callable plain;
};

// Of nested dictionaries; None if they contain other values that may change.
inline nanobind::object copied(nanobind::handle mapping) {
  if (!PyDict_CheckExact(mapping.ptr())) return nanobind::none();
  const Deeper deeper;
  nanobind::object copy = nanobind::steal(PyDict_Copy(mapping.ptr()));
  if (!copy.is_valid()) throw nanobind::python_error();
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(copy.ptr(), &at, &key, &value)) {
    if (PyUnicode_CheckExact(value) || PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value) || value == Py_None)
      continue;
    const nanobind::object inner = copied(value);
    if (inner.is_none()) return inner;
    if (PyDict_SetItem(copy.ptr(), key, inner.ptr())) throw nanobind::python_error();  // of a known key: the order stays
  }
  return copy;
}

}  // namespace o2
