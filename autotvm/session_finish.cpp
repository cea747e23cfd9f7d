// How a session ends: who may be the best is timed again in turns, and one is reported.
#include <tenon/runtime/timer.h>

#include <algorithm>
#include <map>
#include <set>

#include "autotvm/session.h"

namespace tenon {
namespace {

constexpr int kMaxComparisons = 2;      // rounds at the end, should other contenders turn up
constexpr size_t kContenders = 3;       // that are timed beside the default in such a round
constexpr double kNearBest = 1.03;      // who else may be the best
constexpr double kTurnCalls = 12;       // of a kernel in such a round, however long they take
constexpr double kChoosingShare = 0.3;  // of the final time, for each of these rounds
constexpr const char* kCompared = "timed again beside the default schedule";

}  // namespace

/// Is it the calls' number, and not compare_s_, that decides how long all rounds take?
bool TuneSession::long_calls() const {
  return kMaxComparisons * (kContenders + 1) * kTurnCalls * best_us_ * 1e-6 > compare_s_;
}

double TuneSession::finish_s() const {
  if (best_us_ == 0 || best_trace_ == default_trace_) return 0;
  const double calls_s = kTurnCalls * (best_us_ + default_us()) * 1e-6;
  return 0.3 + (long_calls() ? 0 : compare_s_) + calls_s;
}

/// The best, others that look about as good or better, and last the default. A default that is best
/// is only challenged by what looks better. Long calls vary little and cost much: one challenger.
std::vector<LoggedRecord> TuneSession::contenders() const {
  std::vector<LoggedRecord> out;
  const auto best = best_record(records_, query_);
  if (!best) return out;
  const bool default_best = best->record.trace == default_trace_;
  const double limit_us = (default_best ? 1 : kNearBest) * median_us(best->record);
  std::map<std::string, const LoggedRecord*> latest;  // by trace
  for (const LoggedRecord& r : records_) latest[r.record.trace] = &r;
  std::vector<const LoggedRecord*> near;
  for (const auto& [trace, r] : latest) {
    if (trace != default_trace_ && trace != best->record.trace && can_be_best(r->record) &&
        median_us(r->record) <= limit_us)
      near.push_back(r);
  }
  std::sort(near.begin(), near.end(), [](const LoggedRecord* a, const LoggedRecord* b) {
    const double x = median_us(a->record), y = median_us(b->record);
    return x != y ? x < y : a->record.trial < b->record.trial;
  });
  if (!default_best) out.push_back(*best);
  const size_t most = long_calls() ? 1 : kContenders;
  for (const LoggedRecord* r : near) {
    if (out.size() < most) out.push_back(*r);
  }
  if (const auto standard = latest_default()) out.push_back(*standard);
  return out;
}

/// All timed again in turns, for so long, and logged; false when that could not be done.
bool TuneSession::compare(const std::vector<LoggedRecord>& contenders, double seconds) {
  std::vector<Candidate> candidates;
  std::vector<const LoggedRecord*> records;
  for (const LoggedRecord& r : contenders) {
    std::optional<Candidate> c = candidate_of(r.record);
    if (!c) continue;
    candidates.push_back(std::move(*c));
    records.push_back(&r);
  }
  if (candidates.size() < 2 || stopped()) return false;
  const std::vector<Measurement> results = runner_->compare(candidates, seconds);
  if (stopped() || results.size() < candidates.size()) return false;
  hear_others();  // of turns that another tuner has numbered
  ++comparison_;
  for (size_t k = 0; k < results.size(); ++k) {
    Measurement m = results[k];
    const bool is_default = records[k]->record.trace == default_trace_;
    if (is_default && m.status != TrialStatus::ok) continue;  // good before: the machine's fault
    if (m.reason.empty()) m.reason = kCompared;
    const Candidate& c = candidates[k];
    Record r = new_record(c.template_name, c.point, records[k]->record.trace, m);
    r.trial = records[k]->record.trial;
    r.comparison = comparison_;
    keep(std::move(r));
  }
  return true;
}

/// What a person should know of how it went.
void TuneSession::remark() {
  const RunnerNotes notes = runner_->notes();
  report_.stage_s = notes.stage_s;
  for (const auto& [stage, seconds] : clock_.seconds()) report_.stage_s[stage] += seconds;
  if (notes.disturbs()) report_.remarks.push_back(busy_text(notes));
  if (options_.time_s > 0 && report_.trials == 0 && options_.trials > 0 && !report_.interrupted) {
    report_.remarks.push_back(fmt::format(
        "the {:.3g} s went into the expected outputs and the default schedule: no trial was begun",
        options_.time_s));
  }
}

/// Times contenders in turns until the best of all is one that was timed so. True when that was
/// chosen among several: its samples are then the luckiest of theirs.
bool TuneSession::choose() {
  std::set<std::string> compared;
  bool among_several = false;
  for (int k = 0; k < kMaxComparisons; ++k) {
    const std::vector<LoggedRecord> all = contenders();
    const bool news = std::any_of(all.begin(), all.end(), [&](const LoggedRecord& r) {
      return r.record.trace != default_trace_ && !compared.count(r.record.trace);
    });
    if (!news || !compare(all, kChoosingShare * compare_s_)) break;
    for (const LoggedRecord& r : all) compared.insert(r.record.trace);
    among_several = among_several || all.size() > 2;
  }
  return among_several;
}

/// The chosen best and the default once more in turns: what they are reported and recorded with
/// owes nothing to the choice.
void TuneSession::confirm() {
  const std::optional<LoggedRecord> best = best_record(records_, query_);
  const std::optional<LoggedRecord> standard = latest_default();
  if (!best || !standard || best->record.trace == default_trace_) return;
  compare({*best, *standard}, (1 - kMaxComparisons * kChoosingShare) * compare_s_);
}

TuneReport TuneSession::finish() {
  report_.interrupted = stopped();
  report_.dropped = forecast_.dropped();
  report_.settled = settled();
  if (choose()) confirm();
  const std::optional<LoggedRecord> best = best_record(records_, query_);
  report_.interrupted = report_.interrupted || stopped();
  report_.seconds = (now_us() - start_us_) * 1e-6;
  remark();
  if (!best) {
    if (!report_.interrupted) throw TuneError(failure_text(), report_);
    throw TuneError(fmt::format("{}: stopped before any trial worked", task_.name), report_);
  }
  report_.best = *best;
  best_us_ = median_us(best->record);
  if (const auto standard = latest_default()) report_.baseline = *standard;
  return report_;
}

}  // namespace tenon
