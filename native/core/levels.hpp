// Which instructions this machine has. Kernels are compiled once per level, and chosen when the extension is loaded.
#pragma once

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

}  // namespace o2
