#pragma once

namespace o2 {

// Whether the bytes from p to `end` are UTF-8.
bool is_utf8(const char* p, const char* end);

}  // namespace o2
