#include "core/hashing.hpp"

#include "core/moments.hpp"

namespace o2 {

int64_t number_features(std::span<const int32_t> indices, std::span<int32_t> slot_of, int64_t slots) {
  for (const int32_t index : indices) {
    if (static_cast<uint32_t>(index) >= slot_of.size()) return -1;  // a negative one is large, too
    if (slot_of[index] == 0) slot_of[index] = static_cast<int32_t>(slots++);
  }
  return slots;
}

bool scale_features(std::span<const int32_t> indices, const float* values, std::span<const int32_t> slot_of, int64_t slots,
                    SlotMoments moments) {
  for (size_t j = 0; j < indices.size(); j++) {
    if (static_cast<uint32_t>(indices[j]) >= slot_of.size()) return false;
    const int32_t i = slot_of[indices[j]];
    if (static_cast<uint32_t>(i) >= static_cast<uint64_t>(slots)) return false;
    const double x = values[j];
    if (x == 1 && moments.mean[i] == 1) {  // a word again: what follows would change nothing else
      moments.count[i] += 1;
      continue;
    }
    moments.feature[i] = indices[j];
    moments.count[i] += 1;
    welford(x, 1 / moments.count[i], moments.mean[i], moments.squares[i]);
    moments.plain[i] = moments.plain[i] && (x == 1 || x == 0 || x == -1);
  }
  for (int64_t i = 1; i < slots; i++)
    if (!moments.plain[i]) {
      moments.scale[2 * i] = static_cast<float>(moments.mean[i]);
      moments.scale[2 * i + 1] = static_cast<float>(inverse_deviation(moments.count[i], moments.mean[i], moments.squares[i]));
    }
  return true;
}

int64_t to_slots(SparseRows rows, const int32_t* slot_of, const float* scale, int64_t slots, int32_t* out_slots, float* out_values,
                 int64_t* out_offsets) {
  int64_t at = 0;
  out_offsets[0] = 0;
  for (size_t r = 0; r + 1 < rows.offsets.size(); r++) {
    out_slots[at] = 0, out_values[at++] = 1;
    for (int64_t j = rows.offsets[r]; j < rows.offsets[r + 1]; j++) {
      const int32_t i = slot_of[rows.indices[j]];
      if (i <= 0 || i >= slots) continue;
      out_slots[at] = i, out_values[at++] = scaled(rows.values[j], scale + 2 * i);
    }
    out_offsets[r + 1] = at;
  }
  return at;
}

}  // namespace o2
