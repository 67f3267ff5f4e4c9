// Decisions that wait for their reward, by number. The last `limit` at least are kept; a warning says when older ones go.
#pragma once
#include <nanobind/nanobind.h>

#include <deque>
#include <unordered_map>
#include <vector>

namespace o2 {

class Pending {
 public:
  explicit Pending(int64_t limit) : limit_(static_cast<size_t>(limit)) {}

  void keep(int64_t number, nanobind::object decision) {
    const size_t forgotten = file_newest();
    newest_number_ = number, newest_ = std::move(decision);
    if (forgotten) warn(forgotten);
  }

  // The newest one is at hand: its reward mostly comes before the next decision.
  nanobind::object newest() const { return newest_.is_valid() ? newest_ : nanobind::object(nanobind::none()); }

  int64_t newest_number() const { return newest_.is_valid() ? newest_number_ : -1; }

  nanobind::object get(int64_t number) const {
    if (newest_.is_valid() && number == newest_number_) return newest_;
    const auto found = known_.find(number);
    return found == known_.end() ? nanobind::object(nanobind::none()) : found->second;
  }

  bool drop(int64_t number) {
    if (newest_.is_valid() && number == newest_number_) {
      newest_.reset();
      return true;
    }
    return known_.erase(number) > 0;
  }

  size_t size() const { return known_.size() + newest_.is_valid(); }

  // From old to new.
  nanobind::list decisions() const {
    nanobind::list all;
    for (const int64_t number : order_) {
      const auto found = known_.find(number);
      if (found != known_.end()) all.append(found->second);
    }
    if (newest_.is_valid()) all.append(newest_);
    return all;
  }

 private:
  size_t limit_;
  int64_t newest_number_ = -1;
  nanobind::object newest_;
  std::unordered_map<int64_t, nanobind::object> known_;
  std::deque<int64_t> order_;  // some of them are no longer known

  // Returns how many decisions were forgotten.
  size_t file_newest() {
    size_t forgotten = 0;
    if (!newest_.is_valid()) return forgotten;
    known_.emplace(newest_number_, std::move(newest_));
    newest_.reset();
    order_.push_back(newest_number_);
    if (known_.size() > 2 * limit_)
      while (known_.size() > limit_) {
        forgotten += known_.erase(order_.front());
        order_.pop_front();
      }
    if (order_.size() > 4 * limit_ + known_.size()) {
      std::deque<int64_t> left;
      for (const int64_t number : order_)
        if (known_.contains(number)) left.push_back(number);
      order_.swap(left);
    }
    return forgotten;
  }

  void warn(size_t forgotten) const {
    if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                         "act: %zu decisions waited for a reward; the oldest %zu are forgotten, and their ids with them. Their rewards "
                         "can still be told with the decision itself: update(decision, reward). Tell rewards of 0, too",
                         known_.size() + forgotten, forgotten) < 0)
      nanobind::raise_python_error();
  }
};

}  // namespace o2
