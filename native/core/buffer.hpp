// An array that grows at its end, without initialising what is not written yet.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

namespace o2 {

template <class T>
class Buffer {
 public:
  // Room for this many more entries: `push` and `append` do not check.
  void make_room(int64_t more) {
    if (count + more <= room) return;
    room = std::max(2 * room, count + more);
    auto larger = std::make_unique_for_overwrite<T[]>(static_cast<size_t>(room));
    std::copy_n(entries.get(), count, larger.get());
    entries = std::move(larger);
  }
  void push(T entry) { entries[count++] = entry; }
  void append(const T* from, int64_t n) {
    std::copy_n(from, n, entries.get() + count);
    count += n;
  }
  void truncate(int64_t n) { count = n; }

  int64_t size() const { return count; }
  T* data() { return entries.get(); }
  const T* data() const { return entries.get(); }
  T& operator[](int64_t i) { return entries[i]; }
  const T& operator[](int64_t i) const { return entries[i]; }
  std::span<const T> span() const { return {entries.get(), static_cast<size_t>(count)}; }

 private:
  std::unique_ptr<T[]> entries;
  int64_t count = 0, room = 0;
};

}  // namespace o2
