#pragma once
#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "autotvm/measure/check.h"
#include "autotvm/measure/message.h"

namespace tenon {

// Requests to tenon-runner, one JSON object each, answered in order. `slot` names a loaded kernel.
//
//   {"do":"setup", parameters, input_ranges, seed, threads, tolerance, memory_bytes,
//    expected: "read" | "write"}                          buffers, thread pool, limits
//   {"do":"load", slot, ...description of the kernel}     body: the object file
//   {"do":"expected", slot}                               run once into the shared memory
//   {"do":"first", slot, outpaced_us}                     a cold call, then warm ones: samples
//   {"do":"verify", slot}                                 between guard pages: check_error
//   {"do":"time", slots, sample_us, samples}              in alternation: samples of each
//   {"do":"unload", slot}
//
// A reply is {"status": word of TrialStatus, "reason", ...}; every one has "rss_bytes".

/// What a runner is set up for: one task.
struct RunnerSetup {
  std::vector<Parameter> parameters;  ///< of constant shapes
  std::vector<int64_t> dims;          ///< values of the kernels' symbolic extents
  InputRanges input_ranges;
  uint64_t seed = 0;
  int threads = 1;
  double tolerance = 0;
  int64_t memory_bytes = 0;
  int expected_fd = -1;          ///< memory for the expected outputs, see expected_offsets()
  bool writes_expected = false;  ///< only the process that makes them may write there
};

/// Byte offset of each output in the memory of expected outputs, and the total at the end.
std::vector<int64_t> expected_offsets(const std::vector<Parameter>& parameters);

/// A reply, or what became of the process instead.
struct RunnerReply {
  TrialStatus status = TrialStatus::ok;
  std::string reason;
  double check_error = 0;
  std::vector<std::vector<double>> samples_us;
  int64_t rss_bytes = 0;
  bool alive = true;     ///< false: the process has ended
  bool stopped = false;  ///< the stop flag was set while waiting; the process was ended
};

/// A tenon-runner child. Ended, if need be killed, by the destructor.
class RunnerProcess {
 public:
  /// UserError when it cannot be started.
  RunnerProcess(const std::string& program, const RunnerSetup& setup,
                const std::atomic<bool>* stop);
  ~RunnerProcess();
  RunnerProcess(const RunnerProcess&) = delete;
  RunnerProcess& operator=(const RunnerProcess&) = delete;

  RunnerReply load(int slot, const KernelObject& object);
  RunnerReply make_expected(int slot, double timeout_s);
  RunnerReply first(int slot, double outpaced_us, double timeout_s);
  RunnerReply verify(int slot, double timeout_s);
  RunnerReply time(const std::vector<int>& slots, double sample_us, int samples, double timeout_s);
  RunnerReply unload(int slot);

 private:
  RunnerReply ask(const Message& request, double timeout_s);
  std::string end();

  pid_t child_ = -1;
  int socket_ = -1;
  const std::atomic<bool>* stop_ = nullptr;
};

/// tenon-runner beside this program or library, or where it was installed. UserError when it is in
/// none of these places.
std::string find_runner_program();

}  // namespace tenon
