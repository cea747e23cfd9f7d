#include <tenon/driver/tune_summary.h>

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

bool worked(const TuneReport& report) { return !report.best.where.path.empty(); }

double ratio_of(const TuneReport& report) {
  const double best = median_us(report.best.record);
  return best > 0 ? median_us(report.baseline.record) / best : 0;
}

std::string by_frequency(const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (const auto& [what, count] : sorted) out += fmt::format("    {:5} x {}\n", count, what);
  return out;
}

std::string counts_text(const TuneReport& report) {
  std::string out = fmt::format("  {} trials in {:.1f} s ({} resumed):", report.trials,
                                report.seconds, report.resumed);
  for (const auto& [status, count] : report.statuses) out += fmt::format(" {} {}", count, status);
  out += '\n';
  if (report.settled) out += "  ended early: the last trials won less than 0.5%\n";
  out += by_frequency(report.reasons);
  if (!report.dropped.empty())
    out += "  dropped before any trial:\n" + by_frequency(report.dropped);
  for (const std::string& remark : report.remarks) out += fmt::format("  {}\n", remark);
  return out;
}

/// Counts of several reports as one, and the remarks of the first that has some.
TuneReport merged(const NamedReports& reports) {
  TuneReport out;
  for (const auto& [name, r] : reports) {
    out.trials += r.trials;
    out.resumed += r.resumed;
    out.seconds = std::max(out.seconds, r.seconds);  // tasks of a network share the time
    for (const auto& [status, count] : r.statuses) out.statuses[status] += count;
    for (const auto& [reason, count] : r.reasons) out.reasons[reason] += count;
    for (const auto& [reason, count] : r.dropped) out.dropped[reason] += count;
    if (out.remarks.empty()) out.remarks = r.remarks;
  }
  return out;
}

std::string best_text(const std::string& name, const TuneReport& report) {
  if (!worked(report))
    return (report.failure.empty() ? name + ": no candidate worked" : report.failure) + "\n";
  const double best = median_us(report.best.record), standard = median_us(report.baseline.record);
  // The smallest kernels of a network take some nanoseconds.
  const int digits = standard < 10 ? 3 : 1;
  return fmt::format("{0}: default {1:.{6}f} us, best {2:.{6}f} us ({3:.2f}x) {4} {5}\n", name,
                     standard, best, ratio_of(report), report.best.record.template_name,
                     report.best.where.text(), digits);
}

Json task_json(const std::string& name, const TuneReport& report) {
  Json out = {{"task", name},          {"best", nullptr},  {"best_us", nullptr},
              {"default_us", nullptr}, {"ratio", nullptr}, {"template", nullptr}};
  if (worked(report)) {
    out["best"] = report.best.where.text();
    out["best_us"] = median_us(report.best.record);
    out["template"] = report.best.record.template_name;
    if (!report.baseline.record.samples_us.empty()) {
      out["default_us"] = median_us(report.baseline.record);
      out["ratio"] = ratio_of(report);
    }
  }
  out["trials"] = report.trials;
  out["resumed"] = report.resumed;
  out["statuses"] = report.statuses;
  out["reasons"] = report.reasons;
  out["dropped"] = report.dropped;
  out["settled"] = report.settled;
  out["remarks"] = report.remarks;
  out["failure"] = report.failure;
  out["failure_files"] = report.failure_files;
  out["warnings"] = report.warnings;
  return out;
}

}  // namespace

std::string summary_text(const std::string& name, const TuneReport& report) {
  return best_text(name, report) + counts_text(report);
}

std::string summary_text(const NamedReports& reports) {
  std::string out;
  for (const auto& [name, report] : reports) out += best_text(name, report);
  return out + counts_text(merged(reports));
}

std::string summary_json(const NamedReports& reports) {
  int64_t trials = 0, resumed = 0;
  double seconds = 0;
  bool interrupted = false;
  Json tasks = Json::array();
  for (const auto& [name, report] : reports) {
    trials += report.trials;
    resumed += report.resumed;
    seconds = std::max(seconds, report.seconds);  // tasks of a network share the time
    interrupted |= report.interrupted;
    tasks.push_back(task_json(name, report));
  }
  const Json out = {{"summary",
                     {{"trials", trials},
                      {"resumed", resumed},
                      {"seconds", seconds},
                      {"interrupted", interrupted},
                      {"tasks", tasks}}}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tenon
