// Slots of hashed features: numbered in order of appearance after slot 0, the constant, and scaled by running moments.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

namespace o2 {

inline constexpr float SCALED_CLIP = 5;  // limit of standardised numbers

// One value, scaled. scale: (shift, factor) of its slot
inline float scaled(float value, const float* scale) { return std::min(std::max((value - scale[0]) * scale[1], -SCALED_CLIP), SCALED_CLIP); }

// Sparse rows, [n + 1] offsets.
struct SparseRows {
  std::span<const int32_t> indices;
  const float* values;
  std::span<const int64_t> offsets;
};

// The running moments of slots, [slots] each: over the rows that have them.
struct SlotMoments {
  int32_t* feature;  // the index whose slot it is
  double *count, *mean, *squares;
  bool* plain;   // only 0, 1 and -1 so far: an indicator, not scaled
  float* scale;  // (shift, factor) [slots, 2]
};

// Assign slots to new features. slot_of [2^bits]: 0 if none. Returns the number of slots; -1: an index is beyond the table.
int64_t number_features(std::span<const int32_t> indices, std::span<int32_t> slot_of, int64_t slots);

// Update the moments of each slot, and its scale. False: an index has no slot with moments; then some may be updated.
bool scale_features(std::span<const int32_t> indices, const float* values, std::span<const int32_t> slot_of, int64_t slots,
                    SlotMoments moments);

// Write slots and scaled values; each row starts with the constant. Features without a slot are dropped. Returns the
// number of entries written; at most that of the rows and one each.
int64_t to_slots(SparseRows rows, const int32_t* slot_of, const float* scale, int64_t slots, int32_t* out_slots, float* out_values,
                 int64_t* out_offsets);

}  // namespace o2
