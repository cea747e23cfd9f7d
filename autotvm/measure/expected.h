#pragma once
#include "autotvm/measure/build.h"
#include "autotvm/measure/runner_process.h"
#include "autotvm/measure/shared_memory.h"

namespace tenon {

struct ExpectedOptions {
  std::string runner_program;
  double timeout_s = 600;     ///< for one call of the kernel
  double oracle_limit = 1e6;  ///< most statements that the interpreter runs
  double whole_limit = 1e6;   ///< most that a task has whose every element it looks at
  uint64_t seed = 0;          ///< of the inputs and of the elements that are looked at
  const std::atomic<bool>* stop = nullptr;
};

/// Writes the inputs into `memory`, laid out by argument_offsets().
void write_inputs(const Task& task, const RunnerSetup& setup, uint64_t seed, SharedMemory& memory);

/// Computes what is right into `memory`, once, in a tenon-runner of its own: by the unscheduled
/// kernel where that is quick, else by the generic schedule's, which no template has a part in.
/// The interpreter, which shares no code with lowering and code generation, must agree: on all
/// elements where the task is within `whole_limit`, else on the corners, edges and random elements
/// that `oracle_limit` statements allow. Where it can evaluate none of an output (each takes more,
/// or scatters), the unscheduled kernel computes them, however long that takes. False when stopped.
/// UserError when the time is over; InternalError when the kernel does not compile or run, or the
/// interpreter disagrees.
bool compute_expected(const Task& task, const RunnerSetup& setup, const SharedMemory& memory,
                      CompilerPool& compilers, const ExpectedOptions& options);

}  // namespace tenon
