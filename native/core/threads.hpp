// Parts of a job on several threads. Results must not depend on their number: each part writes what is its own.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace o2 {

template <class Work>
void in_parallel(int64_t parts, int threads, const Work& work) {
  if (threads <= 1 || parts <= 1) {
    for (int64_t part = 0; part < parts; part++) work(part);
    return;
  }
  std::atomic<int64_t> next = 0;
  std::exception_ptr failed;
  std::mutex failing;
  const auto take_parts = [&] {
    try {
      for (int64_t part = next++; part < parts; part = next++) work(part);
    } catch (...) {
      const std::lock_guard guard(failing);
      if (!failed) failed = std::current_exception();
      next = parts;
    }
  };
  std::vector<std::thread> others;
  try {
    others.reserve(static_cast<size_t>(threads));
    for (int64_t i = 1; i < threads && i < parts; i++) others.emplace_back(take_parts);
  } catch (const std::exception&) {  // no memory for more threads: those that there are do the work
  }
  take_parts();
  for (auto& one : others) one.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace o2
