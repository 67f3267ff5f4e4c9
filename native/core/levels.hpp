// Which instructions this machine has. Kernels are compiled once per level, and chosen when the extension is loaded.
#pragma once
#include <type_traits>

namespace o2 {

enum class Level { plain = 1, avx2 = 2, avx512 = 3 };

// The highest level of this machine, or the one that O2PL_LEVEL names (plain, avx2, avx512) if the machine has it.
Level level();
const char* level_name();

// A table of kernels, as compiled for `level()`. Other processors than x86-64 have one level.
#if defined(__x86_64__) || defined(_M_X64)
#define O2_CHOSEN(table) \
  (o2::level() == o2::Level::avx512 ? table##_3 : o2::level() == o2::Level::avx2 ? table##_2 : table##_1)
#else
#define O2_CHOSEN(table) table##_1
#endif

// Calls a kernel that is a template of the level, as compiled for `level()`: at_level([&](auto L) { kernel<L>(x); })
template <class Call>
decltype(auto) at_level(Call&& call) {
#if defined(__x86_64__) || defined(_M_X64)
  switch (level()) {
    case Level::avx512: return call(std::integral_constant<int, 3>{});
    case Level::avx2: return call(std::integral_constant<int, 2>{});
    default: break;
  }
#endif
  return call(std::integral_constant<int, 1>{});
}

}  // namespace o2
