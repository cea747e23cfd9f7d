#pragma once
#include <tenon/autotvm/runner.h>

#include <optional>
#include <vector>

#include "autotvm/measure/build.h"
#include "autotvm/measure/runner_process.h"
#include "autotvm/measure/stage_clock.h"

namespace tenon {

/// Times and verifies compiled kernels of one task, one at a time, the fastest so far beside each:
///
///     load -> first calls -> [far behind: outpaced] -> verify -> time in alternation
///                            [two samples behind the best are enough]
class Race {
 public:
  Race(const RunnerOptions& options, const RunnerSetup& setup, StageClock& clock)
      : options_(options), setup_(setup), clock_(clock) {}

  Measurement measure(const Built& built);
  /// As Runner::compare().
  std::vector<Measurement> compare(const std::vector<Built>& kernels, double seconds);
  /// What the CPUs did while kernels were timed.
  const CpuUse& cpu() const { return cpu_; }

 private:
  struct Incumbent {
    KernelObject object;
    double us = 0;  // a call, as measured last
  };

  RunnerProcess& process();
  void renew();
  bool good(const RunnerReply& reply, Measurement& m);
  bool load(int slot, const KernelObject& object, Measurement& m);
  bool load_incumbent();
  bool keeps_pace(int slot, Measurement& m);
  bool verify(int slot, Measurement& m);
  bool time(int slot, Measurement& m);
  bool race(int slot, const Built& built, Measurement& m);
  bool stands_alone(const Built& built, Measurement& m);
  void settle(int slot, const KernelObject& object, const Measurement& m);
  double call_timeout_s() const;
  double verify_timeout_s() const;

  RunnerOptions options_;
  RunnerSetup setup_;
  StageClock& clock_;
  std::optional<RunnerProcess> process_;
  int64_t own_bytes_ = 0, first_own_bytes_ = 0;
  int next_slot_ = 0;
  std::optional<Incumbent> incumbent_;
  int incumbent_slot_ = -1;  // in the process; -1: not loaded
  double first_us_ = 0;      // of the candidate at hand
  CpuUse cpu_;
};

}  // namespace tenon
