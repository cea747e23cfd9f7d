#pragma once
#include <tenon/graph/network.h>
#include <tenon/records/log.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tenon {

/// Something about a line of a log.
struct LogFinding {
  LogRef where;
  std::string text;
};

/// What check_log() found.
struct LogCheck {
  int64_t records = 0;
  int64_t replayed = 0;     ///< traces that gave their schedule again
  int64_t not_rebuilt = 0;  ///< records of network kernels for which no model was given
  int64_t newer = 0;        ///< lines of a newer schema: left alone, not wrong
  std::vector<LogFinding> wrong;
};

/// Reads every line; where the task can be rebuilt (an operator by name, or a kernel of `model`;
/// empty: none) replays the trace on the target it was recorded for. `options`: what the network
/// was tuned with; its target is each record's. Nothing is measured. UserError when the log or the
/// model cannot be read.
LogCheck check_log(const std::string& log, const std::filesystem::path& model = {},
                   const NetworkOptions& options = {});

}  // namespace tenon
