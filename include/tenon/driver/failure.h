#pragma once
#include <tenon/compile/compile.h>

#include <string>

namespace tenon {

/// Writes tuning_logs/TASK-failure-....json, which `tenon replay FILE` reproduces; see
/// write_failure(). The path.
std::string keep_failure(const Task& task, const Trace& trace, TrialStatus status,
                         const std::string& reason, uint64_t seed, int threads);

/// compile(task, trace); where that meets a bug of ours, the InternalError names the file that
/// reproduces it.
Kernel compile_or_keep(const Task& task, const Trace& trace, int threads);

}  // namespace tenon
