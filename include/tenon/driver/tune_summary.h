#pragma once
#include <tenon/autotvm/tune.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// What tuning came to, with the name that each task goes by.
using NamedReports = std::vector<std::pair<std::string, TuneReport>>;

/// For a person: the best beside the default, how trials ended, and why some were refused or
/// failed, the most frequent reason first. Where nothing worked: the first failure and what to try.
/// Lines, each ended.
std::string summary_text(const std::string& name, const TuneReport& report);
/// Of several tasks (a network): a line each, then the counts of all together.
std::string summary_text(const NamedReports& reports);

/// One JSON object on one line: {"summary":{"trials":..,"resumed":..,"seconds":..,
/// "interrupted":..,"tasks":[{"task":..,"best":"LOG:LINE" or null,"best_us":..,"default_us":..,
/// "ratio":..,"template":..,"trials":..,"resumed":..,"statuses":{..},"reasons":{..},"dropped":{..},
/// "settled":false,"remarks":[..],"failure":"",
/// "failure_files":[..],"warnings":[..]}]}}
std::string summary_json(const NamedReports& reports);

}  // namespace tenon
