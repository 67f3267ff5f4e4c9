// The columns of a log, in NumPy buffers that have room for more rows.
#pragma once
#include <algorithm>

#include "python/arrays.hpp"

namespace o2 {

class LogColumns {
 public:
  int64_t n = 0;  // rows so far

  // Where rows can be appended in one call: numeric rows, actions by index. The buffers are kept.
  void attach(nanobind::object values, nanobind::object actions, nanobind::object rewards, nanobind::object propensities,
              nanobind::object ids) {
    const auto rows = nanobind::cast<Array<float, 2>>(values, false);
    values_ = rows.data, width_ = rows.shape[1], capacity_ = rows.shape[0];
    actions_ = pointer<int64_t>(actions), rewards_ = pointer<double>(rewards);
    propensities_ = pointer<double>(propensities), ids_ = pointer<int64_t>(ids);
    kept_ = nanobind::make_tuple(values, actions, rewards, propensities, ids);
  }
  void detach() { capacity_ = 0, kept_.reset(); }

  bool has_room() const { return n < capacity_; }
  int64_t width() const { return width_; }

  // A row; x [width]. Needs room.
  void append(const float* x, int64_t action, double reward, double propensity, int64_t id) {
    std::copy(x, x + width_, values_ + n * width_);
    actions_[n] = action, rewards_[n] = reward, propensities_[n] = propensity, ids_[n] = id;
    n++;  // last: other threads see whole rows only
  }

 private:
  float* values_ = nullptr;
  double *rewards_ = nullptr, *propensities_ = nullptr;
  int64_t *actions_ = nullptr, *ids_ = nullptr, width_ = 0, capacity_ = 0;
  nanobind::object kept_;

  template <class T>
  T* pointer(nanobind::handle column) {
    const auto found = nanobind::cast<Array<T>>(column, false);
    capacity_ = std::min(capacity_, found.shape[0]);
    return found.data;
  }
};

}  // namespace o2
