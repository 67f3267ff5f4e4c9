// What is told of a decision: its action and its reward, as plain numbers of Python.
#pragma once
#include <nanobind/nanobind.h>

#include "python/arrays.hpp"

namespace o2 {

// A plain float, or a plain integer that is not a bool, or NumPy's double.
inline bool number_of(nanobind::handle given, double& number) {
  PyObject* o = given.ptr();
  if (PyFloat_Check(o)) {  // NumPy's double too
    number = PyFloat_AS_DOUBLE(o);
    return true;
  }
  if (!PyLong_CheckExact(o)) return false;
  number = PyLong_AsDouble(o);
  if (number == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return true;
}

// The index of an action: itself, or its place among the names, a tuple or None. -1: it is neither.
inline int64_t index_of(PyObject* action, nanobind::handle names) {
  if (names.is_none()) {
    if (!PyLong_CheckExact(action)) return -1;
    const int64_t index = PyLong_AsLongLong(action);
    if (index == -1 && PyErr_Occurred()) PyErr_Clear();
    return index;
  }
  if (!PyUnicode_CheckExact(action)) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.ptr()); i++) {
    PyObject* name = PyTuple_GET_ITEM(names.ptr(), i);
    if (name == action || PyUnicode_Compare(name, action) == 0) return i;
  }
  return -1;
}

}  // namespace o2
