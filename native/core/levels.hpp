// Which instructions this machine has. Kernels are compiled once per level, and chosen when the extension is loaded.
#pragma once
#include <type_traits>

namespace o2 {

enum class Level { plain = 1, avx2 = 2, avx512 = 3 };

// The highest level of this machine, or the one that O2PL_LEVEL names (plain, avx2, avx512) if the machine has it.
Level level();
const char* level_name();

// A table of kernels, as compiled for `level()`.
template <class Table>
const Table& chosen(const Table& plain, const Table& avx2, const Table& avx512) {
  return level() == Level::avx512 ? avx512 : level() == Level::avx2 ? avx2 : plain;
}

// Calls a kernel that is a template of the level, as compiled for `level()`: at_level([&](auto L) { kernel<L>(x); })
template <class Call>
decltype(auto) at_level(Call&& call) {
  switch (level()) {
    case Level::avx512: return call(std::integral_constant<int, 3>{});
    case Level::avx2: return call(std::integral_constant<int, 2>{});
    default: return call(std::integral_constant<int, 1>{});
  }
}

}  // namespace o2
