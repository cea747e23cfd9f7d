#pragma once
#include <fmt/format.h>
#include <tenon/runtime/timer.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tenon {

/// Says that a step is still running, "WHAT, 7 s so far", from a thread of its own while it lives:
/// first after `first_s` seconds, then every `next_s`.
class LongStep {
 public:
  LongStep(std::function<void(const std::string&)> say, std::string what, double first_s = 2,
           double next_s = 5)
      : say_(std::move(say)), what_(std::move(what)), first_s_(first_s), next_s_(next_s) {
    if (say_) thread_ = std::thread([this] { run(); });
  }
  LongStep(const LongStep&) = delete;
  LongStep& operator=(const LongStep&) = delete;
  ~LongStep() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() {
    const double start_us = now_us();
    std::unique_lock<std::mutex> lock(mutex_);
    for (double wait_s = first_s_;; wait_s = next_s_) {
      if (changed_.wait_for(lock, std::chrono::duration<double>(wait_s), [&] { return done_; }))
        return;
      say_(fmt::format("{}, {:.0f} s so far", what_, (now_us() - start_us) * 1e-6));
    }
  }

  std::function<void(const std::string&)> say_;
  std::string what_;
  double first_s_, next_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace tenon
