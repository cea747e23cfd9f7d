// What the log tells a session: earlier trials of its own search, those of others, and those that
// do not count.
#include <algorithm>

#include "autotvm/session.h"

namespace tenon {
namespace {

/// Why a record of the task's program does not count for this query, in words; empty where only the
/// thread count differs.
std::string why_foreign(const Record& r, const RecordQuery& q) {
  if (r.target.fingerprint() != q.target.fingerprint())
    return fmt::format("for the features of {} ({})", r.target.name, r.target.cpu);
  if (r.threads != q.threads) return "";
  if (r.target.cpu != q.target.cpu) return fmt::format("on another CPU ({})", r.target.cpu);
  if (r.tenon != q.tenon || r.llvm != q.llvm)
    return fmt::format("by another version (tenon {}, LLVM {})", r.tenon, r.llvm);
  if (r.cold != q.cold) return r.cold ? "with cold caches" : "with warm caches";
  return "at other sample sizes";
}

std::string log_key(const Record& r) {
  return log_key(r.status, r.template_name, r.knobs, r.trace);
}

}  // namespace

std::string log_key(TrialStatus status, const std::string& template_name, const std::string& knobs,
                    const std::string& trace) {
  return status == TrialStatus::refused ? template_name + " " + knobs : trace;
}

std::optional<double> outcome_of(const Record& r) {
  return can_be_best(r) ? std::optional(median_us(r)) : std::nullopt;
}

/// The log's trials of this seed answer the search's proposals when they come again, batch by batch
/// as they came first: so that a session that was killed goes on as if it had not been. Trials of
/// other seeds the search knows from the start.
void TuneSession::resume() {
  LoadedLog log = load_log(options_.log);
  report_.warnings = std::move(log.warnings);
  tell_of_others(log.records);
  if (!log.records.empty()) loaded_line_ = log.records.back().where.line;
  std::vector<SearchOutcome> outcomes;
  for (LoggedRecord& logged : log.records) {
    const Record& r = logged.record;
    if (match_of(r, query_) != Match::exact) continue;
    const std::optional<double> us = outcome_of(r);
    if (us) ++worked_;
    if (r.seed == options_.seed) {
      logged_us_.emplace(log_key(r), us);  // the first: measuring again came later
    } else {
      if (r.status != TrialStatus::refused) known_us_[r.trace] = us;
      if (const auto at = space_.find(r)) outcomes.push_back({*at, us});
    }
    next_trial_ = std::max(next_trial_, r.trial + 1);
    comparison_ = std::max(comparison_, r.comparison);
    ++report_.resumed;
    records_.push_back(std::move(logged));
  }
  search_->learn(outcomes);
  if (const auto best = best_record(records_, query_)) {
    best_us_ = median_us(best->record);
    best_trace_ = best->record.trace;
  }
}

/// Warns of trials of this program that stand in the log but do not count.
void TuneSession::tell_of_others(const std::vector<LoggedRecord>& records) {
  std::map<std::string, int64_t> reasons;
  for (const LoggedRecord& logged : records) {
    const Record& r = logged.record;
    if (r.program != query_.program || match_of(r, query_) == Match::exact) continue;
    if (const std::string why = why_foreign(r, query_); !why.empty()) ++reasons[why];
  }
  for (const auto& [why, count] : reasons)
    report_.warnings.push_back(
        fmt::format("{}: {} trial(s) of {} were made {}: they stay and do "
                    "not count here",
                    options_.log, count, task_.name, why));
}

/// What other tuners have put into the log since.
void TuneSession::hear_others() {
  for (LoggedRecord& logged : log_->news()) {
    const Record& r = logged.record;
    if (logged.where.line <= loaded_line_ || match_of(r, query_) != Match::exact) continue;
    const std::optional<double> us = outcome_of(r);
    if (us) ++worked_;
    if (us && (best_us_ == 0 || *us < best_us_)) {
      best_us_ = *us;
      best_trace_ = r.trace;
    }
    if (r.status != TrialStatus::refused) known_us_[r.trace] = us;
    if (const auto at = space_.find(r)) search_->learn({{*at, us}});
    next_trial_ = std::max(next_trial_, r.trial + 1);
    comparison_ = std::max(comparison_, r.comparison);
    // A line of another's may stand before one that was written here.
    const auto place = std::upper_bound(
        records_.begin(), records_.end(), logged.where.line,
        [](int64_t line, const LoggedRecord& known) { return line < known.where.line; });
    records_.insert(place, std::move(logged));
  }
}

/// The search has gone another way than the one that made the log: it learns what is left of it.
void TuneSession::stop_replay() {
  for (const LoggedRecord& logged : records_) {
    const Record& r = logged.record;
    std::optional<double> us;
    if (r.seed != options_.seed || !take_logged(log_key(r), us)) continue;
    if (r.status != TrialStatus::refused) known_us_[r.trace] = us;
    if (const auto at = space_.find(r)) search_->learn({{*at, us}});
  }
}

/// Is it in the log and comes up for the first time? Then `us` is what became of it.
bool TuneSession::take_logged(const std::string& key, std::optional<double>& us) {
  const auto found = logged_us_.find(key);
  if (found == logged_us_.end()) return false;
  us = found->second;
  logged_us_.erase(found);
  return true;
}

}  // namespace tenon
