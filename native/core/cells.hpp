// A real-valued action within bounds, in one of K cells: see `o2pl.policies.cells`.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/math.hpp"

namespace o2 {

struct Bounds {
  double low, high, ratio;  // ratio: log(high / low), or 0: cells of equal width

  static Bounds of(const double* numbers) { return {numbers[0], numbers[1], numbers[2]}; }
};

struct DrawnNumber {
  double action, density;
};

// The action at a relative position; rounding does not lead beyond the bounds.
static inline double action_at(double place, const Bounds& within) {
  const auto [low, high, ratio] = within;
  const double action = ratio > 0 ? low * exp_of(place * ratio) : low + place * (high - low);
  return std::min(std::max(action, low), high);
}

// Its relative position.
static inline double place_of(double action, const Bounds& within) {
  const auto [low, high, ratio] = within;
  return ratio > 0 ? log_of(action / low) / ratio : (action - low) / (high - low);
}

// An action by inversion, and its density; the rest of the uniform number is the position in the cell. [K]
DrawnNumber draw_number(const double* probabilities, int64_t K, double uniform, const Bounds& within);

}  // namespace o2
