#include "core/levels.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#if defined(_M_X64)
#include <intrin.h>
#endif

namespace o2 {
namespace {

Level highest() {
#if defined(__x86_64__) && defined(__GNUC__)
  const bool three = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  if (three) return Level::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Level::avx2;
#elif defined(_M_X64)
  int basic[4], more[4];
  __cpuidex(basic, 1, 0), __cpuidex(more, 7, 0);
  const auto has = [](int word, int bit) { return ((word >> bit) & 1) != 0; };
  const auto kept = has(basic[2], 27) ? _xgetbv(0) : 0;  // registers that the system saves
  const bool two = (kept & 0x6) == 0x6 && has(basic[2], 12) && has(more[1], 5);  // FMA, AVX2
  const bool three = (kept & 0xe6) == 0xe6 && has(more[1], 16) && has(more[1], 17) && has(more[1], 30) && has(more[1], 31);
  if (two && three) return Level::avx512;  // F, DQ, BW, VL
  if (two) return Level::avx2;
#endif
  return Level::plain;
}

Level asked_for() {
  const char* given = std::getenv("O2PL_LEVEL");
  const std::string_view asked = given ? given : "";
  return asked == "plain" ? Level::plain : asked == "avx2" ? Level::avx2 : Level::avx512;
}

}  // namespace

Level level() {
  static const Level found = std::min(highest(), asked_for());
  return found;
}

const char* level_name() {
  return level() == Level::avx512 ? "avx512" : level() == Level::avx2 ? "avx2" : "plain";
}

}  // namespace o2
