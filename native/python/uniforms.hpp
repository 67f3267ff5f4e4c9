// A stream of uniform numbers in [0, 1), drawn ahead from a NumPy generator: one at a time would be ten times slower.
#pragma once
#include <iterator>
#include <thread>
#include <vector>

#include "python/arrays.hpp"

namespace o2 {

class Uniforms {
 public:
  static constexpr int64_t AHEAD = 1024;

  explicit Uniforms(nanobind::object generator) : generator_(std::move(generator)), before_(position()) {}

  double next() {
    if (ahead_.empty()) refill();
    const double number = ahead_.back();
    ahead_.pop_back();
    return number;
  }
  void give_back(double number) { ahead_.push_back(number); }

  void refill() {
    while (refilling_) {  // another thread does, which has given the GIL away
      const nanobind::gil_scoped_release released;
      std::this_thread::yield();
    }
    if (!ahead_.empty()) return;
    const Refilling guard(refilling_);
    before_ = position();
    const KeptArray<double> drawn(generator_.attr("random")(AHEAD));
    ahead_.assign(std::make_reverse_iterator(drawn.view().data + AHEAD), std::make_reverse_iterator(drawn.view().data));
  }
  void skip(int64_t used) { ahead_.resize(ahead_.size() - used); }

  int64_t left() const { return static_cast<int64_t>(ahead_.size()); }
  const nanobind::object& before() const { return before_; }
  nanobind::object position() const { return generator_.attr("bit_generator").attr("state"); }

 private:
  nanobind::object generator_, before_;  // `before`: the generator's position before the numbers ahead were drawn
  std::vector<double> ahead_;            // the next one last
  bool refilling_ = false;

  struct Refilling {
    bool& now;
    explicit Refilling(bool& flag) : now(flag) { now = true; }
    ~Refilling() { now = false; }
  };
};

}  // namespace o2
