#pragma once
#include <tenon/autotvm/runner.h>

#include "autotvm/measure/build.h"

namespace tenon {

/// local_runner() with another compiler: tests put faulty kernels in.
std::unique_ptr<Runner> local_runner_with(const Task& task, const RunnerOptions& options,
                                          CompileFn compile);

}  // namespace tenon
