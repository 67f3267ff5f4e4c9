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
  int64_t n = 0;  // contexts so far

  // Where rows can be appended in one call: actions by index or real-valued, and one array of numeric rows [rows, width], or
  // indices, values and offsets of sparse ones. sets: the first row of each action set [sets + 1]; None: a context is one
  // row. The buffers are kept.
  void attach(nanobind::tuple contexts, nanobind::object sets, nanobind::object actions, nanobind::object rewards,
              nanobind::object propensities, nanobind::object ids) {
    expect(contexts.size() == 1 || contexts.size() == 3, "contexts: expected rows, or indices, values and offsets");
    sparse_ = contexts.size() == 3;
    if (sparse_) {
      const auto indices = nanobind::cast<Array<int32_t>>(contexts[0], false);
      const auto values = nanobind::cast<Array<float>>(contexts[1], false);
      const auto offsets = nanobind::cast<Array<int64_t>>(contexts[2], false);
      features_ = indices.data, values_ = values.data, offsets_ = offsets.data, width_ = 0;
      entry_capacity_ = std::min(indices.size(), values.size()), row_capacity_ = offsets.size() - 1;
    } else {
      const auto rows = nanobind::cast<Array<float, 2>>(contexts[0], false);
      values_ = rows.data, width_ = rows.shape[1], row_capacity_ = rows.shape[0];
    }
    capacity_ = row_capacity_, sets_ = nullptr;
    if (!sets.is_none()) {
      const auto firsts = nanobind::cast<Array<int64_t>>(sets, false);
      sets_ = firsts.data, capacity_ = firsts.size() - 1;
    }
    const bool real = PyArray_Check(actions.ptr()) && PyArray_TYPE(reinterpret_cast<PyArrayObject*>(actions.ptr())) == NPY_FLOAT64;
    indices_ = real ? nullptr : pointer<int64_t>(actions), numbers_ = real ? pointer<double>(actions) : nullptr;
    rewards_ = pointer<double>(rewards);
    propensities_ = pointer<double>(propensities), ids_ = pointer<int64_t>(ids);
    kept_ = nanobind::make_tuple(contexts, sets, actions, rewards, propensities, ids);
  }
  void detach() { capacity_ = 0, kept_.reset(); }

  bool has_room() const { return n < capacity_; }
  int64_t width() const { return width_; }
  bool real() const { return numbers_; }  // actions are real-valued
  bool attached() const { return kept_.is_valid(); }
  bool sparse() const { return attached() && sparse_; }
  const float* values() const { return attached() && !sparse_ ? values_ : nullptr; }
  SparseColumns entries() const { return {features_, values_, offsets_, rows()}; }
  const int64_t* sets() const { return attached() ? sets_ : nullptr; }
  const int64_t* actions() const { return indices_; }
  const double* numbers() const { return numbers_; }
  const double* rewards() const { return rewards_; }
  const double* propensities() const { return propensities_; }

  // Whether the rows of one more context fit, and their entries, if they are sparse. Needs room for the context.
  bool has_room_for(int64_t more, int64_t entries) const {
    return rows() + more <= row_capacity_ && (!sparse_ || offsets_[rows()] + entries <= entry_capacity_);
  }

  // A context of some rows, one unless it is a set; x [rows, width]. Needs room.
  void append(const float* x, int64_t more, const Played& action, double reward, double propensity, int64_t id) {
    std::copy_n(x, more * width_, values_ + rows() * width_);
    append(more, action, reward, propensity, id);
  }

  // A context of sparse rows, which end at ends [rows + 1]. Needs room.
  void append(const int32_t* features, const float* values, const int64_t* ends, int64_t more, const Played& action, double reward,
              double propensity, int64_t id) {
    const int64_t first = rows(), at = offsets_[first];
    std::copy_n(features, ends[more], features_ + at), std::copy_n(values, ends[more], values_ + at);
    for (int64_t r = 1; r <= more; r++) offsets_[first + r] = at + ends[r];
    append(more, action, reward, propensity, id);
  }

 private:
  int64_t rows() const { return sets_ ? sets_[n] : n; }

  void append(int64_t more, const Played& action, double reward, double propensity, int64_t id) {
    if (numbers_) numbers_[n] = action.number;
    else indices_[n] = action.index;
    rewards_[n] = reward, propensities_[n] = propensity, ids_[n] = id;
    if (sets_) sets_[n + 1] = sets_[n] + more;
    n++;  // last: other threads see whole rows only
  }

  bool sparse_ = false;
  float* values_ = nullptr;     // [rows, width], or of the entries of sparse rows
  int32_t* features_ = nullptr;  // of the entries
  double *numbers_ = nullptr, *rewards_ = nullptr, *propensities_ = nullptr;
  int64_t *indices_ = nullptr, *ids_ = nullptr, *offsets_ = nullptr, *sets_ = nullptr;
  int64_t width_ = 0, capacity_ = 0, row_capacity_ = 0, entry_capacity_ = 0;
  nanobind::object kept_;

  template <class T>
  T* pointer(nanobind::handle column) {
    const auto found = nanobind::cast<Array<T>>(column, false);
    capacity_ = std::min(capacity_, found.shape[0]);
    return found.data;
  }
};

}  // namespace o2
