// How certain predictions are, as Python holds it.
#pragma once
#include <memory>

#include "core/uncertainty.hpp"
#include "python/arrays.hpp"

namespace o2 {

struct HeldUncertainty {
  std::shared_ptr<const Uncertainty> held;
};

// Shift and scale [d] and the clip, of a `FeaturePlan` or like its first three parts.
Standardised standardised_of(nanobind::tuple plan);
nanobind::tuple saved(const Curvature& from);
// `saved`, or None: nothing is known of the rows that were learned from.
void load(Curvature& to, nanobind::handle given);

}  // namespace o2
