// The columns of a log, in NumPy buffers that have room for more rows.
#pragma once
#include <algorithm>

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

  // Where rows can be appended in one call: numeric rows, actions by index or real-valued. The buffers are kept.
  void attach(nanobind::object values, nanobind::object actions, nanobind::object rewards, nanobind::object propensities,
              nanobind::object ids) {
    const auto rows = nanobind::cast<Array<float, 2>>(values, false);
    values_ = rows.data, width_ = rows.shape[1], capacity_ = rows.shape[0];
    const bool real = PyArray_Check(actions.ptr()) && PyArray_TYPE(reinterpret_cast<PyArrayObject*>(actions.ptr())) == NPY_FLOAT64;
    indices_ = real ? nullptr : pointer<int64_t>(actions), numbers_ = real ? pointer<double>(actions) : nullptr;
    rewards_ = pointer<double>(rewards);
    propensities_ = pointer<double>(propensities), ids_ = pointer<int64_t>(ids);
    kept_ = nanobind::make_tuple(values, actions, rewards, propensities, ids);
  }
  void detach() { capacity_ = 0, kept_.reset(); }

  bool has_room() const { return n < capacity_; }
  int64_t width() const { return width_; }
  bool real() const { return numbers_; }  // actions are real-valued
  const float* values() const { return kept_.is_valid() ? values_ : nullptr; }
  const int64_t* actions() const { return indices_; }
  const double* rewards() const { return rewards_; }

  // A row; x [width]. Needs room.
  void append(const float* x, const Played& action, double reward, double propensity, int64_t id) {
    std::copy(x, x + width_, values_ + n * width_);
    if (numbers_) numbers_[n] = action.number;
    else indices_[n] = action.index;
    rewards_[n] = reward, propensities_[n] = propensity, ids_[n] = id;
    n++;  // last: other threads see whole rows only
  }

 private:
  float* values_ = nullptr;
  double *numbers_ = nullptr, *rewards_ = nullptr, *propensities_ = nullptr;
  int64_t *indices_ = nullptr, *ids_ = nullptr, width_ = 0, capacity_ = 0;
  nanobind::object kept_;

  template <class T>
  T* pointer(nanobind::handle column) {
    const auto found = nanobind::cast<Array<T>>(column, false);
    capacity_ = std::min(capacity_, found.shape[0]);
    return found.data;
  }
};

}  // namespace o2
