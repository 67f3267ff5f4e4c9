// The columns of a log, in NumPy buffers that have room for more rows.
#pragma once
#include <algorithm>

#include "core/sparse.hpp"
#include "python/arrays.hpp"

namespace o2 {

// An action by index, or a real-valued one.
struct Played {
  int64_t index = 0;
  double number = 0;

  bool operator==(const Played&) const = default;
};

class LogColumns {
 public:
  int64_t n = 0;  // rows so far

  // Where rows can be appended in one call: actions by index or real-valued, and numeric rows [rows, width], or indices,
  // values and offsets of sparse ones. The buffers are kept.
  void attach(nanobind::object contexts, nanobind::object actions, nanobind::object rewards, nanobind::object propensities,
              nanobind::object ids) {
    sparse_ = PyTuple_Check(contexts.ptr());
    if (sparse_) {
      const auto of = nanobind::borrow<nanobind::tuple>(contexts);
      expect(of.size() == 3, "contexts: expected indices, values and offsets");
      const auto indices = nanobind::cast<Array<int32_t>>(of[0], false);
      const auto values = nanobind::cast<Array<float>>(of[1], false);
      const auto offsets = nanobind::cast<Array<int64_t>>(of[2], false);
      features_ = indices.data, values_ = values.data, offsets_ = offsets.data, width_ = 0;
      entry_capacity_ = std::min(indices.size(), values.size()), capacity_ = offsets.size() - 1;
    } else {
      const auto rows = nanobind::cast<Array<float, 2>>(contexts, false);
      values_ = rows.data, width_ = rows.shape[1], capacity_ = rows.shape[0];
    }
    const bool real = PyArray_Check(actions.ptr()) && PyArray_TYPE(reinterpret_cast<PyArrayObject*>(actions.ptr())) == NPY_FLOAT64;
    indices_ = real ? nullptr : pointer<int64_t>(actions), numbers_ = real ? pointer<double>(actions) : nullptr;
    rewards_ = pointer<double>(rewards);
    propensities_ = pointer<double>(propensities), ids_ = pointer<int64_t>(ids);
    kept_ = nanobind::make_tuple(contexts, actions, rewards, propensities, ids);
  }
  void detach() { capacity_ = 0, kept_.reset(); }

  bool has_room() const { return n < capacity_; }
  int64_t width() const { return width_; }
  bool real() const { return numbers_; }  // actions are real-valued
  bool attached() const { return kept_.is_valid(); }
  bool sparse() const { return attached() && sparse_; }
  const float* values() const { return attached() && !sparse_ ? values_ : nullptr; }
  SparseColumns entries() const { return {features_, values_, offsets_, n}; }
  const int64_t* actions() const { return indices_; }
  const double* numbers() const { return numbers_; }
  const double* rewards() const { return rewards_; }
  const double* propensities() const { return propensities_; }

  // A row; x [width]. Needs room.
  void append(const float* x, const Played& action, double reward, double propensity, int64_t id) {
    std::copy(x, x + width_, values_ + n * width_);
    append(action, reward, propensity, id);
  }

  // A sparse row of some entries. Needs room for them, too.
  bool has_room_for(int64_t entries) const { return offsets_[n] + entries <= entry_capacity_; }
  void append(const int32_t* features, const float* values, int64_t size, const Played& action, double reward, double propensity,
              int64_t id) {
    const int64_t at = offsets_[n];
    std::copy_n(features, size, features_ + at), std::copy_n(values, size, values_ + at);
    offsets_[n + 1] = at + size;
    append(action, reward, propensity, id);
  }

 private:
  void append(const Played& action, double reward, double propensity, int64_t id) {
    if (numbers_) numbers_[n] = action.number;
    else indices_[n] = action.index;
    rewards_[n] = reward, propensities_[n] = propensity, ids_[n] = id;
    n++;  // last: other threads see whole rows only
  }

  bool sparse_ = false;
  float* values_ = nullptr;     // [rows, width], or of the entries of sparse rows
  int32_t* features_ = nullptr;  // of the entries
  double *numbers_ = nullptr, *rewards_ = nullptr, *propensities_ = nullptr;
  int64_t *indices_ = nullptr, *ids_ = nullptr, *offsets_ = nullptr, width_ = 0, capacity_ = 0, entry_capacity_ = 0;
  nanobind::object kept_;

  template <class T>
  T* pointer(nanobind::handle column) {
    const auto found = nanobind::cast<Array<T>>(column, false);
    capacity_ = std::min(capacity_, found.shape[0]);
    return found.data;
  }
};

}  // namespace o2
