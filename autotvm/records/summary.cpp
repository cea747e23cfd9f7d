#include <tenon/records/lookup.h>
#include <tenon/records/summary.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <set>
#include <tuple>

namespace tenon {
namespace {

constexpr double kNear = 0.95;     // of the final speed
constexpr double kPauseS = 60;     // so long between two lines: nobody was tuning
constexpr int64_t kLeastGaps = 5;  // fewer say nothing of a rate

auto key_of(const Record& r) {
  return std::tuple(r.task, r.args, r.program, r.target.fingerprint(), r.target.cpu, r.threads,
                    r.tenon, r.llvm, r.cold);
}

/// Seconds of "2026-01-31T12:00:00Z"; nothing for other text.
std::optional<int64_t> seconds_of(const std::string& time) {
  std::tm parts{};
  const char* end = ::strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (!end || *end != '\0') return std::nullopt;
  return ::timegm(&parts);
}

/// Of neighbouring lines only: a clock that was set, and pauses, spoil just the gap they are in.
double rate_of(const std::vector<LoggedRecord>& records) {
  double seconds = 0;
  int64_t gaps = 0;
  for (size_t k = 1; k < records.size(); ++k) {
    const auto before = seconds_of(records[k - 1].record.time),
               after = seconds_of(records[k].record.time);
    if (!before || !after) continue;
    const auto gap = static_cast<double>(*after - *before);
    if (gap < 0 || gap > kPauseS) continue;
    seconds += gap;
    ++gaps;
  }
  return gaps >= kLeastGaps && seconds > 0 ? static_cast<double>(gaps) / seconds : 0;
}

RecordQuery query_of(const Record& r) {
  return {r.program, "", r.args, r.target, r.threads, r.tenon, r.llvm, r.cold};
}

/// Trials until one was so fast; 0: none was.
int64_t trials_until(const std::vector<const Record*>& trials, double us) {
  for (size_t k = 0; k < trials.size(); ++k) {
    if (can_be_best(*trials[k]) && median_us(*trials[k]) <= us) return static_cast<int64_t>(k) + 1;
  }
  return 0;
}

/// The default's time in the turn that the best comes from, which it ends; else as measured last.
double default_us(const std::vector<LoggedRecord>& records,
                  const std::optional<LoggedRecord>& best) {
  double last_us = 0;
  for (const LoggedRecord& logged : records) {
    const Record& r = logged.record;
    if (r.trial != 0 || !can_be_best(r)) continue;
    last_us = median_us(r);
    if (best && r.comparison > 0 && r.comparison == best->record.comparison &&
        logged.where.line >= best->where.line)
      break;
  }
  return last_us;
}

TaskSummary summarize(const std::vector<LoggedRecord>& records) {
  TaskSummary out;
  out.first = records.front();
  out.best = best_record(records, query_of(out.first.record));
  out.default_us = default_us(records, out.best);
  out.trials_per_s = rate_of(records);
  std::set<std::string> traces;
  std::vector<const Record*> trials;
  double fastest_us = 0;
  for (const LoggedRecord& logged : records) {
    const Record& r = logged.record;
    if (r.status != TrialStatus::refused && !traces.insert(r.trace).second) {
      ++out.measured_again;
      continue;
    }
    trials.push_back(&r);
    ++out.statuses[std::string(name(r.status))];
    if (is_failure(r)) ++out.reasons[reason_class(r)];
    if (can_be_best(r) && (fastest_us == 0 || median_us(r) < fastest_us)) fastest_us = median_us(r);
  }
  out.trials = static_cast<int64_t>(trials.size());
  out.trials_to_95 = trials_until(trials, fastest_us / kNear);
  return out;
}

}  // namespace

std::string reason_class(const Record& r) {
  std::string out = std::string(name(r.status)) + ": ";
  const std::string line = split_text(r.reason, '\n').front();
  for (size_t i = 0; i < line.size() && out.size() < 100; ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(line[i])) != 0;
    if (!digit) {
      out += line[i];
    } else if (out.back() != '#') {
      out += '#';
    }
  }
  return out;
}

bool is_failure(const Record& r) {
  return r.status != TrialStatus::ok && r.status != TrialStatus::outpaced;
}

std::vector<TaskSummary> summarize_log(const std::vector<LoggedRecord>& records) {
  std::map<decltype(key_of(Record())), std::vector<LoggedRecord>> tasks;
  for (const LoggedRecord& logged : records) tasks[key_of(logged.record)].push_back(logged);
  std::vector<TaskSummary> out;
  for (const auto& [key, lines] : tasks) out.push_back(summarize(lines));
  return out;
}

}  // namespace tenon
