// How an action is drawn from the scores of a row.
#pragma once
#include "core/cells.hpp"

namespace o2 {

struct Drawing {
  enum class Kind { index, within, normal };
  Kind kind = Kind::index;
  Bounds bounds{};              // within bounds, in cells
  double centre = 0, scale = 1;  // from a normal distribution whose mean is the centre plus the score

  bool real() const { return kind != Kind::index; }
};

}  // namespace o2
