#pragma once
#include <tenon/ir/program.h>
#include <tenon/records/record.h>

#include <string>

namespace tenon {

/// Keeps a trial that gave a wrong answer or met a bug of ours: one line, the record (trace,
/// inputs' seed, reason) with the unscheduled program, in a file of its own beside `log`. `tenon
/// replay FILE` reproduces it. The path; UserError when it cannot be written.
std::string write_failure(const Record& record, const Program& program, const std::string& log);

}  // namespace tenon
