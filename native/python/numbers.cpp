#include "python/numbers.hpp"

#include <algorithm>

#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::NewArray;

namespace {

// FNV-1a of the bytes.
struct Fnv {
  uint64_t state = 0xCBF29CE484222325;
  void operator()(uint32_t byte) { state = (state ^ byte) * 0x100000001B3; }
};

// A character in UTF-8. False: it is half of a surrogate pair.
template <class Put>
bool put_utf8(uint32_t c, Put& put) {
  if (c < 0x80) {
    put(c);
    return true;
  }
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c >= 0xD800 && c < 0xE000) return false;
    if (c < 0x10000) put(0xE0 | c >> 12);
    else put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
  return true;
}

NewArray<int64_t> numbers_of_words(nb::handle words) {
  auto* array = reinterpret_cast<PyArrayObject*>(words.ptr());
  o2::expect(PyArray_Check(words.ptr()) && PyArray_NDIM(array) == 1 && PyArray_TYPE(array) == NPY_UNICODE && PyArray_ISCARRAY_RO(array),
             "words: expected a contiguous array of strings");
  const int64_t n = PyArray_DIM(array, 0), most = PyArray_ITEMSIZE(array) / 4;
  const auto* letters = static_cast<const Py_UCS4*>(PyArray_DATA(array));
  NewArray<int64_t> numbers({n});
  for (int64_t r = 0; r < n; r++, letters += most) {
    int64_t size = most;
    while (size > 0 && letters[size - 1] == 0) size--;
    Fnv hash;
    for (int64_t i = 0; i < size; i++) {
      if (put_utf8(letters[i], hash)) continue;
      const nb::object text = nb::steal(PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, letters, size));
      if (text.is_valid()) nb::steal(PyUnicode_AsUTF8String(text.ptr()));  // says what is wrong
      nb::raise_python_error();
    }
    uint64_t found = hash.state;
    found ^= found >> 32;
    found *= 0x9E3779B97F4A7C15;
    numbers.view[r] = static_cast<int64_t>(found >> 1);
  }
  return numbers;
}

}  // namespace

void bind_numbers(nb::module_& m) {
  m.def("next_number", &o2::next_number, "Return the number of a new decision.");
  m.def("renew_numbers", [](int64_t start) { o2::next_of_all = start; }, nb::arg("start"), "Count decisions from here on.");
  m.def("numbers_of_words", &numbers_of_words, nb::arg("words"),
        nb::sig("def numbers_of_words(words: numpy.typing.NDArray[numpy.str_]) -> numpy.typing.NDArray[numpy.int64]"),
        "Hash strings to 63-bit numbers: FNV-1a of their UTF-8, then mixed. [n]");
}
