#include "core/bets.hpp"

#include "core/levels.hpp"

namespace o2 {

int64_t count_looks(int64_t n) {
  int64_t found = 0;
  for (int64_t t = 0, stride = 1; t + stride <= n; stride = look_every(t, stride)) t += stride, found++;
  return found;
}

const BetKernels& bet_kernels() {
  static const BetKernels& found = O2_CHOSEN(bets);
  return found;
}

}  // namespace o2
