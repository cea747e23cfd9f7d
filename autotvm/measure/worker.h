#pragma once
#include <tenon/runtime/guard.h>
#include <tenon/runtime/module.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotvm/measure/check.h"
#include "autotvm/measure/runner_process.h"

namespace tenon {

/// Memory between two parts that may not be touched, read-only once filled: a kernel that writes to
/// an input crashes instead of spoiling later trials. It lies on large pages where an Array would,
/// so that a kernel runs here as fast as elsewhere.
class ReadOnlyArray {
 public:
  /// At the start of a page; or, with GuardAt::end, ending at one (whose element size permits).
  explicit ReadOnlyArray(const Array& contents, GuardAt guard = GuardAt::start);
  const Array& array() const { return array_; }

 private:
  Array array_;
};

/// The inputs and expected outputs of one task, as `setup.shared_fd` has them.
struct TaskArrays {
  /// UserError when memory is short.
  explicit TaskArrays(const RunnerSetup& setup);

  std::vector<ReadOnlyArray> inputs;      ///< for timing: each starts a page
  std::vector<ReadOnlyArray> end_inputs;  ///< for verifying: each ends one
  std::vector<Array> expected;            ///< in the shared memory
  std::vector<double> scales;             ///< output_rms() of each
};

/// What a worker does: holds the kernels of one task, and times and verifies.
class Worker {
 public:
  /// UserError when memory is short.
  Worker(const RunnerSetup& setup, const TaskArrays& arrays);

  struct Verdict {
    TrialStatus status = TrialStatus::ok;
    std::string reason;
    double error = 0;
  };

  /// UserError when the workspace is more than the memory limit.
  void load(int slot, const KernelObject& object);
  void unload(int slot) { kernels_.erase(slot); }
  /// Memory that checking a kernel may take, its workspace included.
  int64_t memory_limit_bytes() const;
  /// Processor time that `seconds` of all threads may take.
  double cpu_limit_s(double seconds) const { return seconds * pool_.workers() + 10; }
  void make_expected(int slot);
  /// One cold call into poisoned outputs; unless that is hopeless beside `outpaced_us`, or long and
  /// good enough, warm calls for 0.2 ms, at least one.
  std::vector<double> first(int slot, double outpaced_us);
  /// Compares what first() left, then runs between guard pages and compares.
  Verdict verify(int slot);
  /// Samples of each kernel in turn, `samples` of each; no more than two where the first kernel
  /// then takes `behind` (0: whatever) times what the second takes, nor than n where it takes
  /// 1 + 2 / n * (behind - 1) times that. `cpu`: what the CPUs did meanwhile.
  std::vector<std::vector<double>> time(const std::vector<int>& slots, double sample_us,
                                        int samples, double behind, CpuUse& cpu);

 private:
  struct Loaded {
    Module module;
    double call_us = 0;                      // of the latest call or sample
    std::map<size_t, ReadOnlyArray> packed;  // by parameter: the inputs that it takes packed
    std::vector<void*> arguments;            // for timing
  };

  Loaded& at(int slot);
  void run(const Module& module, const std::vector<void*>& arguments);
  double sample(int slot, int64_t calls);
  void empty_caches(const Loaded& kernel) const;
  void poison_outputs();
  void make_end_outputs();
  void watch_inputs() const;
  void verify_timed(int slot, Verdict& verdict);
  void verify_guarded(const Loaded& kernel, Verdict& verdict);
  void judge(size_t output, const Array& actual, Verdict& verdict) const;

  RunnerSetup setup_;
  const TaskArrays& arrays_;
  ThreadPool pool_;
  Workspace workspace_;
  std::vector<Parameter> output_parameters_;
  std::vector<Array> outputs_;                               // for timing
  std::vector<std::unique_ptr<GuardedBuffer>> end_outputs_;  // for verifying; made when needed
  std::vector<void*> arguments_;                             // of kernels that pack nothing ahead
  std::map<int, Loaded> kernels_;
  int written_by_ = -1;  // the only kernel that wrote outputs_ since they were poisoned
};

}  // namespace tenon
