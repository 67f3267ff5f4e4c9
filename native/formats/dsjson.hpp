// Lines of Vowpal Wabbit's dsjson as columns. Only the envelope is read; `c`, the features, stays text, and is hashed if that
// is asked for. Unusual lines (slots, real-valued actions, escaped keys, errors) are left to `o2pl.formats.dsjson`, which
// reads them or reports what is wrong.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/buffer.hpp"
#include "formats/json_sets.hpp"

namespace o2 {

struct TextColumn {
  Buffer<uint8_t> bytes;     // UTF-8
  Buffer<int32_t> offsets;   // of each text, [n + 1]
  Buffer<bool> missing;      // [n]
};

// A row per line that is not empty; NaN or -1: missing. What a line has that is not `fine` is missing.
struct DsjsonLines {
  Buffer<int64_t> places;    // start and end in the block, [n, 2]
  Buffer<int64_t> numbered;  // number of the line, from 0 in the block
  Buffer<bool> fine;         // false: left to the slow path
  Buffer<int64_t> action;
  Buffer<double> reward, propensity, drop_probability;
  Buffer<int8_t> skip;
  TextColumn context, event_id, time, rest;  // rest: the fields without a column, as one object
  Buffer<int32_t> ranked;    // offsets of the rankings, [n + 1]
  Buffer<int32_t> ranking;   // actions from 0
  Buffer<double> probabilities;
  Buffer<int32_t> sets;      // offsets of the contexts' lists, [n + 1]; unusual contexts have none
  FeatureLists lists;
};

DsjsonLines scan_dsjson(std::string_view block, bool hashed);

}  // namespace o2
