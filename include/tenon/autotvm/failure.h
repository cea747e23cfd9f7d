#pragma once
#include <tenon/compile/task.h>
#include <tenon/records/record.h>

#include <optional>
#include <string>

namespace tenon {

/// Keeps a trial that gave a wrong answer or met a bug of ours: one line, the record (trace,
/// inputs' seed, reason) with the task's unscheduled program, in a file of its own beside `log`.
/// `tenon replay FILE` reproduces it. The path; UserError when it cannot be written.
std::string write_failure(const Record& record, const Task& task, const std::string& log);

/// The task of a record that write_failure() wrote, without templates; nothing for another record.
/// UserError when the program in it is damaged.
std::optional<Task> task_of_failure(const Record& record, const Target& target);

}  // namespace tenon
