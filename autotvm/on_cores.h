#pragma once
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tenon {

/// Calls work(0) .. work(count - 1) on so many threads, each once, in any order. `work` throws
/// nothing.
template <class F>
void on_cores(int cores, size_t count, const F& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t n = next++; n < count; n = next++) work(n);
  };
  std::vector<std::thread> others;
  const auto threads = static_cast<size_t>(std::max(1, cores));
  for (size_t n = 1; n < std::min(threads, count); ++n) others.emplace_back(run);
  run();
  for (std::thread& t : others) t.join();
}

}  // namespace tenon
