#pragma once
#include <tenon/compile/task.h>
#include <tenon/records/lookup.h>

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// A point of a task's space made concrete.
struct Candidate {
  std::string template_name;
  Point point;
  Trace trace;
  Program program;  ///< the scheduled loop tree
};

/// What measuring gave; see Record for the members.
struct Measurement {
  TrialStatus status = TrialStatus::run_error;
  std::string reason;
  std::vector<double> samples_us;
  CheckResult check = CheckResult::not_run;
  double check_error = 0;
  double compile_us = 0;
};

/// What a runner can say of its work beside the results.
struct RunnerNotes {
  std::map<std::string, double> stage_s;  ///< where the time went: "compile" -> 3.2, ...
  double timed_s = 0;                     ///< kernels were timed so long
  /// Shares of that time, of one thread and one CPU: a thread of the kernel was ready to run and
  /// had no CPU; other programs, or the hypervisor, had one. A busy machine is one that disturbs().
  double waited = 0, others = 0;
  bool disturbs() const { return timed_s > 0.5 && (waited > 0.02 || others > 0.1); }
};

/// Measures candidates of one task.
class Runner {
 public:
  virtual ~Runner() = default;
  /// One result a candidate, in order. A candidate that fails in any way costs its own result only.
  /// Those that were not begun when the time was over have none: fewer results, the first ones.
  virtual std::vector<Measurement> measure(const std::vector<Candidate>& candidates) = 0;
  /// All verified, and timed in alternation in fresh processes, as programs that use the kernels
  /// would run them. Takes about `seconds` where the kernels are not longer; empty when stopped.
  virtual std::vector<Measurement> compare(const std::vector<Candidate>& candidates,
                                           double seconds) = 0;
  virtual RunnerNotes notes() const { return {}; }

  /// measure() begins no candidate after this instant of now_us().
  void begin_until(double us) { until_us_ = us; }

 protected:
  double until_us_ = std::numeric_limits<double>::infinity();
};

struct RunnerOptions {
  int threads = 1;
  uint64_t seed = 0;      ///< of the inputs
  double timeout_s = 10;  ///< for one call
  double compile_timeout_s = 20;
  double expected_timeout_s = 600;  ///< for the kernel that says what is right
  double sample_us = 500;           ///< a sample repeats short calls until it is as long
  int samples = 5;                  ///< fewer, at least 3, of calls of some milliseconds
  double outpaced = 1.3;            ///< stop at the first warm call that is so many times the best
  /// The arguments are put out of the caches before each timed call.
  bool cold = false;
  int64_t memory_bytes = int64_t{2} << 30;    ///< a candidate's, on top of arguments and workspace
  int64_t growth_bytes = int64_t{512} << 20;  ///< a process that has grown by so much is replaced
  /// Multiply-adds that the interpreter may take to confirm what is expected.
  int64_t oracle_limit = 1000000;
  /// measure() returns early, with fewer results, when another thread or a signal handler sets it.
  const std::atomic<bool>* stop = nullptr;
  std::string program;  ///< path of tenon-runner; empty: found beside this program
  /// Told what is about to take more than some seconds, in words.
  std::function<void(const std::string&)> on_long_step = {};
  /// A small task is checked whole by the interpreter where that takes less, about; else in part.
  double interpreter_s = 60;
};

/// Compiles in child processes, and loads, times and verifies in a tenon-runner of its own, one
/// candidate at a time: one that crashes, hangs, writes out of bounds, gives wrong answers, starts
/// processes or takes all memory costs one trial. The fastest so far is the incumbent, timed in
/// alternation with each newcomer. Outputs are compared on random inputs with those of a kernel
/// outside of the race that the interpreter confirms. UserError when tenon-runner is missing or a
/// symbolic extent of the task has no sample size; InternalError when that kernel fails or the
/// interpreter disagrees with it.
std::unique_ptr<Runner> local_runner(const Task& task, const RunnerOptions& options = {});

/// Answers from the records of one task, by template and knob values; those it has none for are
/// run_error "not in the log". Lets searches be compared without hardware.
std::unique_ptr<Runner> simulated_runner(const std::vector<LoggedRecord>& records);

}  // namespace tenon
