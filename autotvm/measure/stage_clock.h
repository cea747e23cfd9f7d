#pragma once
#include <tenon/runtime/timer.h>

#include <map>
#include <string>

namespace tenon {

/// Adds up the seconds that each stage of some work takes.
class StageClock {
 public:
  /// Runs `work` and counts its time to `stage`; gives what it gives.
  template <class F>
  auto run(const char* stage, F work) {
    const Lap lap{*this, stage};
    return work();
  }
  const std::map<std::string, double>& seconds() const { return seconds_; }

 private:
  struct Lap {
    StageClock& clock;
    const char* stage;
    double start_us = now_us();
    ~Lap() { clock.seconds_[stage] += (now_us() - start_us) * 1e-6; }
  };

  std::map<std::string, double> seconds_;
};

}  // namespace tenon
