#pragma once
#include <tenon/autotvm/ranker.h>
#include <tenon/graph/network.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tenon {

/// What a ranker learned from logs.
struct RankerTraining {
  Ranker ranker;  ///< of all rows
  size_t rows = 0;
  size_t tasks = 0;
  std::map<std::string, int64_t> passed_over;  ///< why records taught nothing -> how many
  std::vector<UnseenQuality> unseen;           ///< operators left out in turn
  std::vector<std::string> warnings;           ///< of the logs
};

/// Rebuilds the tasks of the logs' records (operators by name and arguments; kernels of `model`,
/// empty: none), schedules and lowers each measured trial again, and learns from their times. The
/// same logs give the same ranker. UserError when libxgboost is missing, a log cannot be read, or
/// fewer than 32 records teach something.
RankerTraining train_ranker(const std::vector<std::string>& logs,
                            const std::filesystem::path& model = {},
                            const NetworkOptions& options = {});

}  // namespace tenon
