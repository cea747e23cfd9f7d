#pragma once
#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "autotvm/measure/check.h"
#include "autotvm/measure/message.h"

namespace tenon {

// tenon-runner fills the inputs once and then forks a worker for the requests below, which is
// cheap: whatever a kernel breaks, only that worker is ended, with every process it started, and
// another takes its place. On descriptor 3 the tuner asks the runner itself:
//
//   {"do":"setup", parameters, input_ranges, seed, threads, tolerance, memory_bytes, cold,
//    expected: "read" | "write"}                          buffers, limits
//   {"do":"start"}, then the worker's socket as a descriptor
//   {"do":"end", kill: bool}                              reply's "reason": how the worker ended
//
// and on the worker's socket, one JSON object each, answered in order (`slot` names a loaded
// kernel):
//
//   {"do":"load", slot, ...description of the kernel}     body: the object file
//   {"do":"expected", slot}                               run once into the shared memory
//   {"do":"first", slot, outpaced_us}                     a cold call, then warm ones: samples
//   {"do":"verify", slot}                                 between guard pages: check_error
//   {"do":"time", slots, sample_us, samples, behind}      in alternation: samples of each
//   {"do":"unload", slot}
//
// A reply is {"status": word of TrialStatus, "reason", ...}; every one of a worker has "own_bytes".

/// What a runner is set up for: one task.
struct RunnerSetup {
  std::vector<Parameter> parameters;  ///< of constant shapes
  std::vector<int64_t> dims;          ///< values of the kernels' symbolic extents
  int threads = 1;
  double tolerance = 0;
  int64_t memory_bytes = 0;
  bool cold = false;             ///< caches are emptied of the arguments before each timed call
  int shared_fd = -1;            ///< memory of all arguments, see argument_offsets(): the inputs
                                 ///< and the expected outputs
  bool writes_expected = false;  ///< only the process that makes them may write there
};

/// How long a kernel's samples took, and what else the CPUs did meanwhile (microseconds).
struct CpuUse {
  double wall_us = 0;
  double waited_us = 0;  ///< all threads together: ready to run, and another had the CPU
  double others_us = 0;  ///< all CPUs together: of other processes, and taken by the hypervisor
  void add(const CpuUse& more) {
    wall_us += more.wall_us;
    waited_us += more.waited_us;
    others_us += more.others_us;
  }
};

/// A reply, or what became of the process instead.
struct RunnerReply {
  TrialStatus status = TrialStatus::ok;
  std::string reason;
  double check_error = 0;
  std::vector<std::vector<double>> samples_us;
  CpuUse cpu;
  int64_t own_bytes = 0;
  bool alive = true;     ///< false: the worker has ended, and all that was loaded is gone
  bool stopped = false;  ///< the stop flag was set while waiting; the worker was ended
};

/// A tenon-runner child with a worker. Ended, if need be killed, by the destructor.
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
  /// `behind` > 0: so many times the second slot, and fewer samples of the first are enough
  /// (Worker::time).
  RunnerReply time(const std::vector<int>& slots, double sample_us, int samples, double timeout_s,
                   double behind = 0);
  RunnerReply unload(int slot);
  /// Ends the worker; the next request starts another. All that was loaded is gone.
  void renew();

 private:
  void start_runner();
  void start_worker();
  RunnerReply ask(const Message& request, double timeout_s);
  RunnerReply ask_runner(const Message& request, double timeout_s);
  std::string end_worker(bool kill);
  void end_runner();

  std::string program_;
  RunnerSetup setup_;
  pid_t child_ = -1;
  int runner_socket_ = -1, worker_socket_ = -1;  // -1: none is there
  const std::atomic<bool>* stop_ = nullptr;
};

/// tenon-runner beside this program or library, or where it was installed. UserError when it is in
/// none of these places.
std::string find_runner_program();

}  // namespace tenon
