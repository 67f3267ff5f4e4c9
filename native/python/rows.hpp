// A context as it comes: an array of numbers, read into single precision.
#pragma once
#include <cstring>
#include <vector>

#include "python/arrays.hpp"

namespace o2 {

// Reads a C-contiguous float32 or float64 array of this many dimensions, with d columns, into `to`. False: it is something
// else, or has an entry that is not finite in single precision; no error is set.
inline bool read_rows(nanobind::handle context, int dimensions, int64_t d, std::vector<float>& to, int64_t& rows) {
  PyObject* given = context.ptr();
  if (!PyArray_CheckExact(given)) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(given);
  const int kind = PyArray_TYPE(array);
  if (PyArray_NDIM(array) != dimensions || (kind != NPY_FLOAT32 && kind != NPY_FLOAT64)) return false;
  if (!PyArray_IS_C_CONTIGUOUS(array) || !PyArray_ISALIGNED(array) || !PyArray_ISNOTSWAPPED(array)) return false;
  if (PyArray_DIM(array, dimensions - 1) != d) return false;
  rows = dimensions == 2 ? PyArray_DIM(array, 0) : 1;
  const int64_t size = rows * d;
  to.resize(size);
  if (kind == NPY_FLOAT32) {
    std::memcpy(to.data(), PyArray_DATA(array), size * sizeof(float));
  } else {
    const auto* from = static_cast<const double*>(PyArray_DATA(array));
    for (int64_t i = 0; i < size; i++) to[i] = static_cast<float>(from[i]);
  }
  uint32_t largest = 0;  // of the bits without the sign: an exponent of ones is infinity or NaN
  for (int64_t i = 0; i < size; i++) {
    uint32_t bits;
    std::memcpy(&bits, &to[i], sizeof(bits));
    bits &= 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return largest < 0x7f800000u;
}

}  // namespace o2
