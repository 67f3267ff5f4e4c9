// NumPy arrays as arguments and results: an `Array<T, N>` is a view of a C-contiguous array of N dimensions.
//
// Array<const T, N>: read. Another order, or a type that converts without loss, is copied.
// Array<T, N>: written in place. Only a writeable array of exactly this type and order is accepted.
#pragma once
#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL o2pl_numpy
#ifndef O2_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "core/buffer.hpp"

namespace o2 {

template <class T, int N = 1>
struct Array {
  T* data = nullptr;
  std::array<int64_t, N> shape{};

  int64_t size() const {
    int64_t product = 1;
    for (int64_t each : shape) product *= each;
    return product;
  }
  std::span<T> span() const { return {data, static_cast<size_t>(size())}; }
  T& operator[](int64_t i) const { return data[i]; }
};

// Stops a call whose arrays do not belong together.
inline void expect(bool fits, const char* expected) {
  if (!fits) throw std::invalid_argument(expected);
}

template <class T>
constexpr int numpy_type() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, float>) return NPY_FLOAT32;
  else if constexpr (std::is_same_v<U, double>) return NPY_FLOAT64;
  else if constexpr (std::is_same_v<U, bool>) return NPY_BOOL;
  else if constexpr (std::is_same_v<U, int8_t>) return NPY_INT8;
  else if constexpr (std::is_same_v<U, uint8_t>) return NPY_UINT8;
  else if constexpr (std::is_same_v<U, int32_t>) return NPY_INT32;
  else if constexpr (std::is_same_v<U, uint32_t>) return NPY_UINT32;
  else if constexpr (std::is_same_v<U, int64_t>) return NPY_INT64;
  else if constexpr (std::is_same_v<U, uint64_t>) return NPY_UINT64;
  else static_assert(sizeof(U) == 0, "no NumPy type");
}

template <class T>
constexpr auto numpy_type_name() {
  using nanobind::detail::const_name;
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, float>) return const_name("numpy.float32");
  else if constexpr (std::is_same_v<U, double>) return const_name("numpy.float64");
  else if constexpr (std::is_same_v<U, bool>) return const_name("numpy.bool_");
  else if constexpr (std::is_same_v<U, int8_t>) return const_name("numpy.int8");
  else if constexpr (std::is_same_v<U, uint8_t>) return const_name("numpy.uint8");
  else if constexpr (std::is_same_v<U, int32_t>) return const_name("numpy.int32");
  else if constexpr (std::is_same_v<U, uint32_t>) return const_name("numpy.uint32");
  else if constexpr (std::is_same_v<U, int64_t>) return const_name("numpy.int64");
  else return const_name("numpy.uint64");
}

// What an argument is to type checkers: the code says Ints of all integers, and Floats of all floats. Single precision
// keeps its name: that makes overloads, single precision first, differ.
template <class T>
constexpr auto numpy_kind_name() {
  using nanobind::detail::const_name;
  using U = std::remove_const_t<T>;
  if constexpr (std::is_integral_v<U> && !std::is_same_v<U, bool>) return const_name("numpy.integer[typing.Any]");
  else if constexpr (std::is_same_v<U, double>) return const_name("numpy.floating[typing.Any]");
  else return numpy_type_name<T>();
}

// A new array: what a function returns. `data` is not initialised.
template <class T, int N = 1>
struct NewArray {
  nanobind::object object;
  Array<T, N> view;

  explicit NewArray(std::array<int64_t, N> shape) {
    std::array<npy_intp, N> sizes;
    for (int i = 0; i < N; i++) sizes[i] = shape[i];
    PyObject* made = PyArray_SimpleNew(N, sizes.data(), numpy_type<T>());
    if (!made) throw nanobind::python_error();
    object = nanobind::steal(made);
    view = {static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(made))), shape};
  }
  explicit NewArray(Buffer<T>&& buffer)  // without a copy
    requires(N == 1)
      : view{nullptr, {buffer.size()}} {
    auto owner = std::make_unique<Buffer<T>>(std::move(buffer));
    view.data = owner->data();
    npy_intp size = view.shape[0];
    PyObject* made = PyArray_SimpleNewFromData(1, &size, numpy_type<T>(), view.data);
    if (!made) throw nanobind::python_error();
    object = nanobind::steal(made);
    nanobind::capsule base(owner.get(), [](void* p) noexcept { delete static_cast<Buffer<T>*>(p); });
    owner.release();
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(made), base.release().ptr())) throw nanobind::python_error();
  }
  explicit NewArray(std::span<const T> entries)
    requires(N == 1)
      : NewArray({static_cast<int64_t>(entries.size())}) {
    std::copy(entries.begin(), entries.end(), view.data);
  }
};

}  // namespace o2

namespace nanobind::detail {

template <class T, int N>
struct type_caster<o2::Array<T, N>> {
  using View = o2::Array<T, N>;
  NB_TYPE_CASTER(View, const_name("numpy.typing.NDArray[") + o2::numpy_kind_name<T>() + const_name("]"))

  bool from_python(handle source, uint8_t flags, cleanup_list* call) noexcept {
    PyObject* given = source.ptr();
    constexpr bool written = !std::is_const_v<T>;
    constexpr int needed = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (written ? NPY_ARRAY_WRITEABLE : 0);
    const bool fits = PyArray_Check(given) && PyArray_NDIM(reinterpret_cast<PyArrayObject*>(given)) == N &&
                      PyArray_TYPE(reinterpret_cast<PyArrayObject*>(given)) == o2::numpy_type<T>() &&
                      PyArray_CHKFLAGS(reinterpret_cast<PyArrayObject*>(given), needed) &&
                      PyArray_ISNOTSWAPPED(reinterpret_cast<PyArrayObject*>(given));
    if (!fits) {
      if (written || !call || !(flags & static_cast<uint8_t>(cast_flags::convert))) return false;
      PyArray_Descr* type = PyArray_DescrFromType(o2::numpy_type<T>());
      PyObject* copy = PyArray_FromAny(given, type, N, N, NPY_ARRAY_CARRAY_RO, nullptr);
      if (!copy) {
        PyErr_Clear();
        return false;
      }
      call->append(copy);  // lives as long as the call; a caster within another, of std::optional, does not
      given = copy;
    }
    auto* array = reinterpret_cast<PyArrayObject*>(given);
    value.data = static_cast<T*>(PyArray_DATA(array));
    for (int i = 0; i < N; i++) value.shape[i] = PyArray_DIM(array, i);
    return true;
  }
};

template <class T, int N>
struct type_caster<o2::NewArray<T, N>> {
  static constexpr auto Name = const_name("numpy.typing.NDArray[") + o2::numpy_type_name<T>() + const_name("]");
  template <class U>
  using Cast = o2::NewArray<T, N>;
  static handle from_cpp(o2::NewArray<T, N>&& made, rv_policy, cleanup_list*) noexcept { return made.object.release(); }
};

}  // namespace nanobind::detail

namespace o2 {

// An array from within a Python object, kept alive with its conversion. `nanobind::cast` to an `Array` would not keep it.
template <class T, int N = 1>
class KeptArray {
 public:
  explicit KeptArray(nanobind::handle from) {
    PyArray_Descr* type = PyArray_DescrFromType(numpy_type<T>());
    PyObject* made = PyArray_FromAny(from.ptr(), type, N, N, NPY_ARRAY_CARRAY_RO, nullptr);
    if (!made) throw nanobind::python_error();
    kept_ = nanobind::steal(made);
    auto* array = reinterpret_cast<PyArrayObject*>(made);
    view_.data = static_cast<const T*>(PyArray_DATA(array));
    for (int i = 0; i < N; i++) view_.shape[i] = PyArray_DIM(array, i);
  }
  const Array<const T, N>& view() const { return view_; }
  std::vector<T> copied() const { return {view_.data, view_.data + view_.size()}; }

 private:
  nanobind::object kept_;
  Array<const T, N> view_;
};

template <class T>
nanobind::object array_of(const std::vector<T>& from) {
  return NewArray<T>(std::span<const T>(from)).object;
}

}  // namespace o2
