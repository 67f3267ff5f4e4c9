#include "core/actionwise.hpp"

#include <vector>

#include "core/levels.hpp"

namespace o2 {

SetSums actionwise_partial(const SetsLog& log, double* scores, double* of_risk, double* of_variance) {
  std::vector<double> room(3 * log.n);
  return at_level([&](auto L) { return kernels::actionwise_partial<L>(log, scores, of_risk, of_variance, room.data()); });
}

}  // namespace o2
