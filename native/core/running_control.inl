#include "core/running_control.hpp"

#include "core/wide.hpp"

namespace o2::kernels {

template <int LEVEL>
void predict_row(const SparseColumns& rows, int64_t row, const RunningModel& model, float* predicted) {
  const int64_t first = rows.offsets[row], last = rows.offsets[row + 1], K = model.K;
  by_actions(K, [&]<int L>(int64_t k) {
    using Some = typename Wide<float, L>::Type;
    Some sums{}, w;
    for (int64_t j = first; j < last; j++) {
      memcpy(&w, model.weights + rows.indices[j] * K + k, sizeof w);
      sums += w * rows.values[j];
    }
    memcpy(predicted + k, &sums, sizeof sums);
  });
}

template void predict_row<O2_LEVEL>(const SparseColumns&, int64_t, const RunningModel&, float*);

}  // namespace o2::kernels
