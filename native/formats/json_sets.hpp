// Hashed features of action sets in JSON, `{"user": {...}, "_multi": [{...}, ...]}` as in Vowpal Wabbit's dsjson: what
// `dictionary_sets` makes of parsed dictionaries, in one pass over the text. A repeated key counts twice, as in VW.
#pragma once
#include <cstdint>

#include "core/buffer.hpp"

namespace o2 {

// Lists of features. Each set has one of those that its actions share, and then one per action.
struct FeatureLists {
  Buffer<uint32_t> hashes;  // `name_hash`, all of its bits
  Buffer<float> values;
  Buffer<int64_t> ends;  // of each list, among the features

  void add(uint32_t hash, float value) { hashes.push(hash), values.push(value); }
  void make_room(int64_t features, int64_t lists) {
    hashes.make_room(features), values.make_room(features), ends.make_room(lists);
  }
  void truncate(int64_t features, int64_t lists) {
    hashes.truncate(features), values.truncate(features), ends.truncate(lists);
  }
};

// Appends the lists of one set. Returns the position after it; null, and nothing is appended, if the text is no set with
// actions, or unusual: lists in lists, numbers beyond float32. Then another reader says what is wrong, or reads it.
const char* hash_set(const char* p, const char* end, FeatureLists& out);

// The number of actions of a set; 0: unknown.
int64_t count_actions(const char* p, const char* end);

}  // namespace o2
