// The numbers of decisions of this process: consecutive, from a random start.
#pragma once
#include <atomic>
#include <cstdint>

namespace o2 {

inline std::atomic<int64_t> next_of_all{0};

inline int64_t next_number() { return next_of_all.fetch_add(1, std::memory_order_relaxed); }

}  // namespace o2
