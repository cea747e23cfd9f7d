#pragma once
#include "autotvm/measure/build.h"
#include "autotvm/measure/runner_process.h"

namespace tenon {

/// Memory that child processes share by its descriptor.
class SharedMemory {
 public:
  /// UserError when there is none left.
  explicit SharedMemory(int64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_; }
  void* data() const { return data_; }

 private:
  int fd_ = -1;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

struct ExpectedOptions {
  std::string runner_program;
  double compile_timeout_s = 60, timeout_s = 600;
  double oracle_limit = 1e6;  ///< most statements that the interpreter runs
  const std::atomic<bool>* stop = nullptr;
};

/// Runs the task's unscheduled kernel once in a tenon-runner of its own, into `memory` (laid out by
/// expected_offsets). Where the task is small the interpreter computes the same again, which shares
/// no code with lowering and code generation. False when stopped. InternalError when the kernel
/// does not compile or run, or the two disagree.
bool compute_expected(const Task& task, const RunnerSetup& setup, const SharedMemory& memory,
                      const CompileFn& compile, const ExpectedOptions& options);

}  // namespace tenon
