// Events in Vowpal Wabbit's text: checked, and their features hashed like those of the JSON that is written of them.
//
//     shared |User age:31           an event: the features that its actions share, if any,
//     0:-1:0.8 |Item price:3 x      and a line per action; the played one has a label, action:cost:probability
//     |Item price:2
//
// are {"User":{"age":31},"_multi":[{"Item":{"price":3,"x":1}},{"Item":{"price":2}}]}: `shared.User.age`, `Item.price`.
// Unusual events (namespace scales, quotes, a repeated namespace, numbers that JSON writes differently, errors) are left
// to another reader, which reads them or reports what is wrong. No byte at or after `end` is read.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/buffer.hpp"
#include "formats/json_sets.hpp"

namespace o2::vw {

struct Event {
  const char *begin = nullptr, *end = nullptr;  // its text, without the newline of its last line
  int64_t lines = 0;
  bool usual = false;  // else only the fields above are known
  int64_t action = -1;  // the labelled line; -1: none
  double cost = std::numeric_limits<double>::quiet_NaN(), probability = cost;
  const char *tag = nullptr, *tag_end = nullptr;  // null: none
};

// Scan the event at p, up to an empty line or `end`, and append its features to `out`, which has room: the shared ones,
// then a list per action; an unusual event appends nothing. A feature takes at least two bytes of text, a list one.
Event scan_event(const char* p, const char* end, FeatureLists& out);

// Append the features of an event that is not unusual as JSON. Names and numbers are copied as they are written.
void write_json(const char* p, const char* end, Buffer<char>& out);

}  // namespace o2::vw
