#pragma once
#include <tenon/compile/compile.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// A schedule, with the name it goes by in reports: "unscheduled", "default", "LOG:LINE",
/// "adapted from LOG:LINE" or "adapted from LOG:LINE (another CPU)".
struct NamedTrace {
  std::string schedule;
  Trace trace;
};

/// May the task run under this trace, which was measured on another one: it gives what the
/// unscheduled formula gives, and is worth it. check_adapted() of the driver is one.
using TraceCheck = std::function<bool(const Task& task, const Trace& trace)>;

/// The steps of `trace` that are legal for the task, each tried after those before it. A trace of
/// another task is a suggestion: split(k, 64) stands where k has another extent, a step on a stage
/// that this task lacks is left out.
Trace legal_steps(const Task& task, const Trace& trace);

/// What the records say of the task: the best record's trace, exactly; where there is none, the
/// legal steps of the nearest record of the family, if `adapted_is_good` says so (without it such
/// records are not used). Nothing when no record answers, and, with a line to stderr that names
/// LOG:LINE, when the record's trace cannot be replayed.
std::optional<NamedTrace> recorded_schedule(const Task& task, const RecordStore& records,
                                            int threads, const TraceCheck& adapted_is_good = {});

/// One warning on stderr where tasks have no record but the logs hold some for other instruction
/// features or thread counts: what there is, and what to try.
void warn_of_passed_over(const RecordStore& records, const std::vector<const Task*>& tasks,
                         int threads);

}  // namespace tenon
