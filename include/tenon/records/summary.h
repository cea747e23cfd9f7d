#pragma once
#include <tenon/records/log.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What a log says of one task on one machine: records of equal task, arguments, program, target,
/// thread count and versions, all timed with warm caches or all with cold ones.
struct TaskSummary {
  LoggedRecord first;                ///< of its records
  std::optional<LoggedRecord> best;  ///< by the rule of best_record(); nothing: no trial worked
  double default_us = 0;             ///< trial 0 beside the best, else as measured last; 0: unknown
  int64_t trials = 0;                ///< made; lines that measure a schedule again do not count
  int64_t measured_again = 0;        ///< those lines
  int64_t trials_to_95 = 0;          ///< until the best so far was within 95% of the final speed
  double trials_per_s = 0;           ///< by the times of the lines; 0: they do not say
  std::map<std::string, int64_t> statuses;  ///< of trials: "ok" -> 17, ...
  std::map<std::string, int64_t> reasons;   ///< of failures, shortened -> how many
};

/// Each task of the records, ordered by its name, arguments, target, threads and versions: not by
/// where the lines stand, so that logs merged in any order are summarised alike.
std::vector<TaskSummary> summarize_log(const std::vector<LoggedRecord>& records);

/// "run_error: the kernel crashed (SIGSEGV) at #": the first line of a failure's reason with
/// numbers as '#', so that equal reasons count together.
std::string reason_class(const Record& record);

/// Did the trial fail? An outpaced one did not: it was only slow.
bool is_failure(const Record& record);

}  // namespace tenon
