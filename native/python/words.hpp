// Contexts that are dictionaries of plain values, or action sets of them, as rows of hashed features. Others are left to
// `DictionaryReader`.
#pragma once
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/expanding.hpp"
#include "python/reading.hpp"

namespace o2 {

// A context of a log: its entries, and where those of each of its rows end, [rows + 1].
struct HashedRows {
  std::vector<int32_t> indices;
  std::vector<float> values;
  std::vector<int64_t> ends{0};

  int64_t rows() const { return static_cast<int64_t>(ends.size()) - 1; }
  int64_t size() const { return static_cast<int64_t>(indices.size()); }
  void resize(int64_t size) { indices.resize(size), values.resize(size); }
  bool operator==(const HashedRows&) const = default;
};

class Words {
 public:
  Words() : schema_(nanobind::steal(PyUnicode_InternFromString("schema"))) {}

  // reader: a `DictionaryReader` without interactions
  void read_as(nanobind::object reader, nanobind::object names, Encoding encoding) {
    reader_ = std::move(reader), names_ = std::move(names), encoding_ = encoding;
  }
  bool known() const { return reader_.is_valid(); }
  int64_t width() const { return static_cast<int64_t>(encoding_.mask) + 1; }

  // Whether dictionaries are checked by a schema.
  bool has_schema() const {
    const nanobind::object schema = nanobind::steal(PyObject_GetAttr(reader_.ptr(), schema_.ptr()));
    if (!schema.is_valid()) nanobind::raise_python_error();
    return !schema.is_none();
  }

  // False: something in the context is unusual, or dictionaries are checked by a schema.
  bool read(nanobind::handle context, HashedRows& row) {
    if (has_schema() || !reading_.read(context, *nanobind::inst_ptr<FeatureNames>(names_))) return false;
    const auto size = static_cast<int64_t>(reading_.features.size());
    row.resize(size), row.ends.assign({0, size});
    Entries to{row.indices.data(), row.values.data(), encoding_};
    for (const Feature& each : reading_.features) to(each);
    return true;
  }

  // A row for each of the actions, dictionaries in a list or a tuple, with what they share, a dictionary or None: an
  // action's features, the shared ones, and the products of both. False: as in `read`.
  bool read_set(nanobind::handle shared, nanobind::handle actions, HashedRows& rows) {
    if (has_schema() || !reading_.read_set(shared, actions, *nanobind::inst_ptr<FeatureNames>(names_), ends_)) return false;
    const Feature* all = reading_.features.data();
    const int64_t S = ends_[0], K = static_cast<int64_t>(ends_.size()) - 1;
    rows.ends.resize(K + 1);
    for (int64_t k = 0; k < K; k++) rows.ends[k + 1] = rows.ends[k] + S + (ends_[k + 1] - ends_[k]) * (S + 1);
    rows.resize(rows.ends[K]);
    Entries to{rows.indices.data(), rows.values.data(), encoding_};
    for (int64_t k = 0; k < K; k++) {
      const Feature *own = all + ends_[k], *end = all + ends_[k + 1];
      for (const Feature* each = own; each < end; each++) to(*each);
      for (int64_t i = 0; i < S; i++) to(all[i]);
      for (int64_t i = 0; i < S; i++)
        for (const Feature* each = own; each < end; each++) to(crossed(all[i], *each));
    }
    return true;
  }

  // What a decision on an action set keeps: ends, indices and values, one after the other.
  static nanobind::object packed(const HashedRows& rows) {
    const size_t ends = rows.ends.size() * sizeof(int64_t), column = static_cast<size_t>(rows.size()) * 4;
    const nanobind::object made = nanobind::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(ends + 2 * column)));
    if (!made.is_valid()) nanobind::raise_python_error();
    char* to = PyBytes_AS_STRING(made.ptr());
    std::memcpy(to, rows.ends.data(), ends);
    std::memcpy(to + ends, rows.indices.data(), column), std::memcpy(to + ends + column, rows.values.data(), column);
    return made;
  }

  // The inverse, for K rows. False: these are no such bytes, or of features beyond the width.
  bool unpack(PyObject* bytes, int64_t K, HashedRows& rows) const {
    if (!PyBytes_CheckExact(bytes) || K < 1) return false;
    const auto size = static_cast<size_t>(PyBytes_GET_SIZE(bytes));
    if (static_cast<size_t>(K) >= size / sizeof(int64_t)) return false;
    const size_t ends = (static_cast<size_t>(K) + 1) * sizeof(int64_t);
    const char* from = PyBytes_AS_STRING(bytes);
    rows.ends.resize(K + 1);
    std::memcpy(rows.ends.data(), from, ends);
    bool fits = rows.ends[0] == 0 && static_cast<uint64_t>(rows.ends[K]) == (size - ends) / 8 && size % 8 == 0;
    for (int64_t k = 0; k < K; k++) fits = fits && rows.ends[k] <= rows.ends[k + 1];
    if (!fits) return false;
    rows.resize(rows.ends[K]);
    const size_t column = static_cast<size_t>(rows.size()) * 4;
    std::memcpy(rows.indices.data(), from + ends, column), std::memcpy(rows.values.data(), from + ends + column, column);
    bool odd = false;
    for (const int32_t index : rows.indices) odd |= static_cast<uint32_t>(index) > encoding_.mask;
    for (const float value : rows.values) odd |= !std::isfinite(value);
    return !odd;
  }

 private:
  nanobind::object reader_, names_, schema_;
  Encoding encoding_{};
  PlainReading reading_;
  std::vector<int64_t> ends_;
};

// Of dictionaries in a list; None if one of them is none, or contains other values that may change.
inline nanobind::object copied_list(nanobind::handle context) {
  if (!PyList_CheckExact(context.ptr())) return nanobind::none();
  nanobind::list copies;
  for (const nanobind::handle each : nanobind::borrow<nanobind::list>(context)) {
    nanobind::object copy = copied(each);
    if (copy.is_none()) return copy;
    copies.append(copy);
  }
  return copies;
}

// Whether two dictionaries, or lists of them, have the very same parts in the same order: they are the same rows.
inline bool same_parts(PyObject* one, PyObject* other) {
  const auto same = [](PyObject* a, PyObject* b) { return a == b || same_parts(a, b); };
  if (PyList_CheckExact(one) && PyList_CheckExact(other)) {
    if (PyList_GET_SIZE(one) != PyList_GET_SIZE(other)) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(one); i++)
      if (!same(PyList_GET_ITEM(one, i), PyList_GET_ITEM(other, i))) return false;
    return true;
  }
  if (!PyDict_CheckExact(one) || !PyDict_CheckExact(other) || PyDict_GET_SIZE(one) != PyDict_GET_SIZE(other)) return false;
  PyObject *key, *value, *its_key, *its_value;
  Py_ssize_t at = 0, its = 0;
  while (PyDict_Next(one, &at, &key, &value))
    if (!PyDict_Next(other, &its, &its_key, &its_value) || key != its_key || !same(value, its_value)) return false;
  return true;
}

// Whether two contexts are equal, as Python says: 1 and True are, but not as rows.
inline bool same_contexts(PyObject* one, PyObject* other) {
  if (same_parts(one, other)) return true;
  const int equal = PyObject_RichCompareBool(one, other, Py_EQ);
  if (equal < 0) PyErr_Clear();  // the engine compares them again, and says what is wrong
  return equal > 0;
}

}  // namespace o2
