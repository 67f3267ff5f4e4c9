// What fuzzers share: an input in memory of exactly its size, and checks that stay in every build.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace o2::fuzzing {

// A copy of the input: the address sanitizer sees a byte read before or after it.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : bytes(std::make_unique_for_overwrite<char[]>(size)), size(size) {
    for (size_t i = 0; i < size; i++) bytes[i] = static_cast<char>(data[i]);
  }
  const char* begin() const { return bytes.get(); }
  const char* end() const { return bytes.get() + size; }

 private:
  std::unique_ptr<char[]> bytes;
  size_t size;
};

inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzzing: expected that %s\n", what);
  std::abort();
}

}  // namespace o2::fuzzing
