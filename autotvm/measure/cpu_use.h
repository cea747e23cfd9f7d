#pragma once
#include "autotvm/measure/runner_process.h"

namespace tenon {

/// What the CPUs do between its making and stop(), as seen by this process.
class CpuWatch {
 public:
  CpuWatch();
  CpuUse stop() const;

 private:
  struct Counters {
    double wall_us = 0;
    double own_us = 0;      // processor time of this process
    double waited_us = 0;   // of its threads
    double machine_us = 0;  // of all processes, and taken by the hypervisor
  };
  static Counters now();
  Counters start_;
};

}  // namespace tenon
