#include "core/levels.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace o2 {
namespace {

Level highest() {
#if defined(__x86_64__) && defined(__GNUC__)
  const bool three = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  if (three) return Level::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Level::avx2;
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
