#pragma once
#include <tenon/compile/task.h>
#include <tenon/records/lookup.h>

#include <atomic>
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

/// Measures candidates of one task.
class Runner {
 public:
  virtual ~Runner() = default;
  /// One result a candidate, in order. A candidate that fails in any way costs its own result only.
  virtual std::vector<Measurement> measure(const std::vector<Candidate>& candidates) = 0;
  /// Both timed in alternation, call for call in the same minute, and verified.
  virtual std::pair<Measurement, Measurement> compare(const Candidate& a, const Candidate& b) = 0;
};

struct RunnerOptions {
  int threads = 1;
  uint64_t seed = 0;      ///< of the inputs
  double timeout_s = 10;  ///< for one call
  double compile_timeout_s = 20;
  double expected_timeout_s = 600;  ///< for one call of the unscheduled kernel
  double sample_us = 1000;          ///< a sample repeats short calls until it is as long
  int samples = 5;
  double outpaced = 1.5;  ///< stop at the first warm call that is so many times the best
  int64_t memory_bytes = int64_t{2} << 30;  ///< a candidate's, on top of arguments and workspace
  /// Up to so many multiply-adds the interpreter too computes what is expected.
  int64_t oracle_limit = 1000000;
  /// measure() returns early, with fewer results, when another thread or a signal handler sets it.
  const std::atomic<bool>* stop = nullptr;
  std::string program;  ///< path of tenon-runner; empty: found beside this program
};

/// Compiles in child processes, and loads, times and verifies in a tenon-runner of its own, one
/// candidate at a time: one that crashes, hangs, writes out of bounds, gives wrong answers or takes
/// all memory costs one trial. The fastest so far is the incumbent, timed in alternation with each
/// newcomer. Outputs are compared with those of the unscheduled kernel on random inputs. UserError
/// when tenon-runner is missing or a symbolic extent of the task has no sample size; InternalError
/// when the unscheduled kernel fails or the interpreter disagrees with it.
std::unique_ptr<Runner> local_runner(const Task& task, const RunnerOptions& options = {});

/// Answers from the records of one task, by template and knob values; those it has none for are
/// run_error "not in the log". Lets searches be compared without hardware.
std::unique_ptr<Runner> simulated_runner(const std::vector<LoggedRecord>& records);

}  // namespace tenon
