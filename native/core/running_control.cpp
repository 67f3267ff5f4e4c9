#include "core/running_control.hpp"

#include "core/levels.hpp"
#include "core/penalty.hpp"

namespace o2 {

void predict_losses(const SparseColumns& rows, const int64_t* actions, const double* losses, const double* numbers,
                    RunningModel& model, float* predicted) {
  const int64_t K = model.K;
  const auto predict = at_level([](auto L) { return &kernels::predict_row<L>; });
  for (int64_t s = 0; s < rows.n; s++) {
    float* of_row = predicted + s * K;
    predict(rows, s, model, of_row);
    const int64_t a = actions[s];
    float noise = 1;
    for (int64_t j = rows.offsets[s]; j < rows.offsets[s + 1]; j++) {
      float& v = model.spread[rows.indices[j] * K + a];
      if (v == 0) v = static_cast<float>(model.prior);
      noise += v * rows.values[j] * rows.values[j];
    }
    const double level = baseline_at(numbers, model.total, static_cast<double>(model.rows + s));
    const auto error = static_cast<float>(losses[s] - level - static_cast<double>(of_row[a]));
    model.total += losses[s];
    for (int64_t j = rows.offsets[s]; j < rows.offsets[s + 1]; j++) {
      const int64_t at = rows.indices[j] * K + a;
      const float x = rows.values[j], gain = model.spread[at] * x / noise;
      model.weights[at] += gain * error;
      model.spread[at] *= 1 - gain * x;
    }
  }
  model.rows += rows.n;
}

}  // namespace o2
