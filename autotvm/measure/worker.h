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

/// Memory of whole pages between two that may not be touched, read-only once filled: a kernel that
/// writes to an input crashes instead of spoiling later trials.
class ReadOnlyArray {
 public:
  explicit ReadOnlyArray(const Array& contents);
  const Array& array() const { return array_; }

 private:
  Array array_;
};

/// What tenon-runner does: holds the kernels and arrays of one task, and times and verifies.
class Worker {
 public:
  /// Maps the expected outputs from `setup.expected_fd` and makes the inputs. UserError when memory
  /// is short.
  explicit Worker(const RunnerSetup& setup);

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
  /// One cold call; unless that took 4 times `outpaced_us`, warm calls for 0.2 ms, at least one.
  std::vector<double> first(int slot, double outpaced_us);
  /// Runs between guard pages and compares.
  Verdict verify(int slot);
  /// Samples of each kernel in turn, `samples` of each.
  std::vector<std::vector<double>> time(const std::vector<int>& slots, double sample_us,
                                        int samples);

 private:
  struct Loaded {
    Module module;
    double call_us = 0;                      // of the latest call or sample
    std::map<size_t, ReadOnlyArray> packed;  // by parameter: the inputs that it takes packed
    std::vector<void*> arguments;            // for timing
  };

  Loaded& at(int slot);
  void run(const Module& module, const std::vector<void*>& arguments);
  double sample(Loaded& kernel, int64_t calls);
  Verdict verify_at(const Loaded& kernel, GuardAt guard, uint8_t poison);
  Verdict judge(const Loaded& kernel, const std::vector<std::unique_ptr<GuardedBuffer>>& buffers);
  const Array& input_of(const Loaded& kernel, size_t parameter) const;

  RunnerSetup setup_;
  ThreadPool pool_;
  Workspace workspace_;
  std::vector<ReadOnlyArray> inputs_;
  std::vector<Array> outputs_, expected_;
  std::vector<void*> arguments_;  // of kernels that pack nothing ahead
  std::map<int, Loaded> kernels_;
};

}  // namespace tenon
