// Contexts that are dictionaries of plain values, as rows of hashed features. Others are left to `DictionaryReader`.
#pragma once
#include <utility>
#include <vector>

#include "core/expanding.hpp"
#include "python/reading.hpp"

namespace o2 {

// The entries of a row of a log.
struct HashedRow {
  std::vector<int32_t> indices;
  std::vector<float> values;

  int64_t size() const { return static_cast<int64_t>(indices.size()); }
  bool operator==(const HashedRow&) const = default;
};

class Words {
 public:
  Words() : schema_(nanobind::steal(PyUnicode_InternFromString("schema"))) {}

  // reader: a `DictionaryReader` without interactions
  void read_as(nanobind::object reader, nanobind::object names, Encoding encoding) {
    reader_ = std::move(reader), names_ = std::move(names), encoding_ = encoding;
  }
  bool known() const { return reader_.is_valid(); }

  // False: something in the context is unusual, or dictionaries are checked by a schema.
  bool read(nanobind::handle context, HashedRow& row) {
    const nanobind::object schema = nanobind::steal(PyObject_GetAttr(reader_.ptr(), schema_.ptr()));
    if (!schema.is_valid()) nanobind::raise_python_error();
    if (!schema.is_none() || !reading_.read(context, *nanobind::inst_ptr<FeatureNames>(names_))) return false;
    row.indices.resize(reading_.features.size()), row.values.resize(reading_.features.size());
    Entries to{row.indices.data(), row.values.data(), encoding_};
    for (const Feature& each : reading_.features) to(each);
    return true;
  }

 private:
  nanobind::object reader_, names_, schema_;
  Encoding encoding_{};
  PlainReading reading_;
};

// Whether two dictionaries are equal, as Python says. Those with the very same parts in the same order are, at once.
inline bool same_dictionaries(PyObject* one, PyObject* other) {
  const auto same_parts = [](const auto& self, PyObject* a, PyObject* b) -> bool {
    if (!PyDict_CheckExact(a) || !PyDict_CheckExact(b) || PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) return false;
    PyObject *key, *value, *its_key, *its_value;
    Py_ssize_t at = 0, its = 0;
    while (PyDict_Next(a, &at, &key, &value)) {
      if (!PyDict_Next(b, &its, &its_key, &its_value) || key != its_key) return false;
      if (value != its_value && !self(self, value, its_value)) return false;
    }
    return true;
  };
  if (same_parts(same_parts, one, other)) return true;
  const int equal = PyObject_RichCompareBool(one, other, Py_EQ);
  if (equal < 0) PyErr_Clear();  // the engine compares them again, and says what is wrong
  return equal > 0;
}

}  // namespace o2
