#include "autotvm/session.h"

#include <tenon/autotvm/failure.h>
#include <tenon/compile/compile.h>
#include <tenon/records/summary.h>
#include <tenon/runtime/timer.h>

#include <algorithm>
#include <cctype>
#include <ctime>

#include "autotvm/ranked.h"

namespace tenon {
namespace {

constexpr int64_t kHopelessTrials = 16;  // none of so many worked: more would not either
constexpr int kMaxDuplicates = 2000;     // proposals that repeat a known trace, in a row
constexpr double kInterpreterShare = 8;  // of the time, that what is right is checked in
constexpr double kNoiseShare = 0.005;    // a gain of less is none

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string default_log(const Task& task) {
  std::string file;
  for (char c : task.name)
    file += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ? c : '_';
  return "tuning_logs/" + (file.empty() ? "task" : file) + ".jsonl";
}

RunnerOptions runner_options(const TuneOptions& options) {
  RunnerOptions out;
  out.threads = options.threads;
  out.seed = options.seed;
  out.timeout_s = options.trial_timeout_s;
  out.stop = options.stop;
  out.cold = options.cold;
  if (options.time_s > 0) out.interpreter_s = options.time_s / kInterpreterShare;
  if (!options.quiet)
    out.on_long_step = [](const std::string& what) { fmt::print(stderr, "{}\n", what); };
  return out;
}

TuneOptions completed(TuneOptions options, const Task& task) {
  if (options.log.empty()) options.log = default_log(task);
  if (options.threads <= 0) options.threads = task.target.cores;
  return options;
}

RecordQuery query_of(const Task& task, const TuneOptions& options) {
  RecordQuery out = record_query(task, options.threads);
  out.cold = options.cold;
  return out;
}

}  // namespace

TuneSession::TuneSession(const Task& task, const TuneOptions& options,
                         std::unique_ptr<Runner> runner)
    : task_(task),
      options_(completed(options, task)),
      query_(query_of(task_, options_)),
      space_(task_, options_.space),
      forecast_(space_, task_, options_.threads),
      search_(make_search(options_.search, space_.spaces(), options_.seed, forecast_,
                          ranker_model(space_, task_, options_, ranker_warning_))),
      runner_(std::move(runner)),
      start_us_(now_us()) {
  if (!task_.target.runs_on(Target::host())) {
    throw UserError(fmt::format(
        "{}: tuning measures on this machine, which cannot run code for {}\n  try: --target host",
        task_.name, task_.target.name));
  }
  log_.emplace(options_.log);
  claims_.emplace(options_.log, fmt::format("{} {}{}", query_.program, options_.threads,
                                            options_.cold ? " cold" : ""));
  if (!runner_) runner_ = local_runner(task_, runner_options(options_));
  Result<Candidate> standard = space_.candidate(space_.default_point());
  if (standard) {
    default_ = std::move(standard).value();
    default_trace_ = to_json(default_->trace);
  } else {
    first_failure_ = "the default schedule is refused: " + standard.error();
  }
  resume();
  if (!ranker_warning_.empty()) report_.warnings.push_back(ranker_warning_);
}

/// A trial is over, or the log has it: the search learns of it. A refused point has no trace.
void TuneSession::learn(const SpacePoint& at, const std::string& trace, std::optional<double> us) {
  if (!trace.empty()) known_us_[trace] = us;
  search_->learn({{at, us}});
  if (us && (best_us_ == 0 || *us < best_us_)) {
    best_us_ = *us;
    best_trace_ = trace;
  }
  best_after_.push_back(best_us_);
}

void TuneSession::start() {
  if (!default_ || stopped()) return;
  if (!known_us_.count(default_trace_)) {
    search_->propose(1);  // the default is every search's first proposal
    std::optional<double> us;
    if (!take_logged(default_trace_, us)) {
      const std::vector<Measurement> results = runner_->measure({*default_});
      if (!results.empty()) note(space_.default_point(), default_trace_, results.front());
      return;
    }
    learn(space_.default_point(), default_trace_, us);
  }
  // Resumed: measured again, not logged, so that the runner knows what is to be beaten.
  const auto best = best_record(records_, query_);
  const std::optional<Candidate> candidate =
      best ? candidate_of(best->record) : std::optional<Candidate>();
  if (candidate) runner_->measure({*candidate});
}

std::optional<Candidate> TuneSession::candidate_of(const Record& record) const {
  try {
    Candidate out{
        record.template_name, Point::from_json(record.knobs), trace_from_json(record.trace), {}};
    out.program = replay(task_.program, task_.target, out.trace).program();
    return out;
  } catch (const UserError&) {  // of a version whose steps this one does not know or refuses
    return std::nullopt;
  }
}

bool TuneSession::finished() const {
  return stopped() || report_.trials >= options_.trials || report_.space_used_up || settled() ||
         everything_fails();
}

bool TuneSession::settled() const {
  const auto window = static_cast<int64_t>(options_.patience);
  if (window == 0 || static_cast<int64_t>(best_after_.size()) <= window) return false;
  return recent_gain(static_cast<int>(window)) < kNoiseShare;
}

bool TuneSession::everything_fails() const {
  return worked_ == 0 && report_.trials >= kHopelessTrials;
}

void TuneSession::run(int count) {
  if (finished()) return;
  std::vector<Candidate> candidates;
  const std::vector<Slot> slots =
      clock_.run("propose", [&] { return next_slots(count, candidates); });
  const std::vector<Measurement> results =
      candidates.empty() ? std::vector<Measurement>() : runner_->measure(candidates);
  clock_.run("record", [&] { take(slots, results); });
  claims_->release();
  // The log is what this search measured, in its order, up to where it was ended.
  if (!candidates.empty() && !logged_us_.empty()) stop_replay();
}

/// What became of a batch; `results` are of its first candidates.
void TuneSession::take(const std::vector<Slot>& slots, const std::vector<Measurement>& results) {
  for (const Slot& slot : slots) {
    if (slot.candidate && *slot.candidate >= results.size()) break;  // stopped
    if (slot.candidate || slot.refused) {
      note(slot.at, slot.trace, slot.refused ? *slot.refused : results[*slot.candidate]);
    } else {
      learn(slot.at, slot.trace, slot.us);
    }
  }
}

/// Up to `count` proposals that are new to this session: those the log has, those that are refused,
/// and candidates to be measured; no more trials than are left. Points whose trace is known teach
/// the search what is known of it.
std::vector<TuneSession::Slot> TuneSession::next_slots(int count,
                                                       std::vector<Candidate>& candidates) {
  hear_others();
  std::vector<Slot> slots;
  const auto is_trial = [](const Slot& s) { return s.candidate || s.refused; };
  const auto trials = [&] {
    return report_.trials + std::count_if(slots.begin(), slots.end(), is_trial);
  };
  int duplicates = 0;
  while (static_cast<int>(slots.size()) < count && trials() < options_.trials &&
         duplicates < kMaxDuplicates && !stopped()) {
    const std::vector<SpacePoint> proposed = search_->propose(1);
    if (proposed.empty()) break;
    duplicates = fill_slot(proposed.front(), slots, candidates) ? 0 : duplicates + 1;
  }
  report_.space_used_up = slots.empty() && (search_->done() || duplicates >= kMaxDuplicates);
  drop_known(slots, candidates);
  return slots;
}

/// False for a point that costs nothing: its trace is known, in this batch, or being measured by
/// another tuner.
bool TuneSession::fill_slot(const SpacePoint& at, std::vector<Slot>& slots,
                            std::vector<Candidate>& candidates) {
  Result<Candidate> candidate = space_.candidate(at);
  std::optional<double> us;
  if (!candidate) {
    const std::string& template_name = space_.template_name(at.template_index);
    Slot slot{at, "", std::nullopt, std::nullopt, std::nullopt};
    if (!take_logged(log_key(TrialStatus::refused, template_name, at.point.to_json(), ""), us)) {
      slot.refused.emplace();
      slot.refused->status = TrialStatus::refused;
      slot.refused->reason = candidate.error();
    }
    slots.push_back(std::move(slot));
    return true;
  }
  const std::string trace = to_json(candidate->trace);
  if (const auto known = known_us_.find(trace); known != known_us_.end()) {
    search_->learn({{at, known->second}});
    return false;
  }
  for (const Slot& slot : slots)
    if (slot.trace == trace) return false;
  if (take_logged(trace, us)) {
    slots.push_back({at, trace, std::nullopt, std::nullopt, us});
    return true;
  }
  if (!claims_->take(trace)) return false;
  slots.push_back({at, trace, candidates.size(), std::nullopt, std::nullopt});
  candidates.push_back(std::move(candidate).value());
  return true;
}

/// What another tuner finished just before it was claimed here is not measured again.
void TuneSession::drop_known(std::vector<Slot>& slots, std::vector<Candidate>& candidates) {
  hear_others();
  std::vector<Slot> kept;
  std::vector<Candidate> wanted;
  for (Slot& slot : slots) {
    if (slot.candidate) {
      if (const auto known = known_us_.find(slot.trace); known != known_us_.end()) {
        search_->learn({{slot.at, known->second}});
        continue;
      }
      wanted.push_back(std::move(candidates[*slot.candidate]));
      slot.candidate = wanted.size() - 1;
    }
    kept.push_back(std::move(slot));
  }
  slots = std::move(kept);
  candidates = std::move(wanted);
}

Record TuneSession::new_record(const std::string& template_name, const Point& point,
                               const std::string& trace, const Measurement& m) const {
  Record r;
  r.task = task_.name;
  r.args = query_.args;
  r.program = query_.program;
  r.family = query_.family;
  r.target = task_.target;
  r.threads = options_.threads;
  r.template_name = template_name;
  r.knobs = point.to_json();
  r.trace = trace.empty() ? "[]" : trace;
  r.status = m.status;
  r.reason = m.reason;
  r.cold = options_.cold;
  r.samples_us = m.samples_us;
  r.check = m.check;
  r.check_error = m.check_error;
  r.compile_us = m.compile_us;
  r.seed = options_.seed;
  r.tenon = query_.tenon;
  r.llvm = query_.llvm;
  r.time = utc_now();
  return r;
}

/// One trial is over: logged, counted, and the search learns of it.
void TuneSession::note(const SpacePoint& at, const std::string& trace, const Measurement& m) {
  Record r = new_record(space_.template_name(at.template_index), at.point, trace, m);
  r.trial = next_trial_++;
  const std::optional<double> us = outcome_of(r);
  if (us) ++worked_;
  if (r.trial > 0) ++report_.trials;
  learn(at, trace, us);
  count_status(r);
  keep(std::move(r));
}

void TuneSession::count_status(const Record& r) {
  ++report_.statuses[std::string(name(r.status))];
  if (!is_failure(r)) return;
  ++report_.reasons[reason_class(r)];
  if (first_failure_.empty())
    first_failure_ = fmt::format("trial {}: {}: {}", r.trial, name(r.status), r.reason);
}

const LoggedRecord& TuneSession::keep(Record record) {
  const LogRef place = log_->append(record);
  records_.push_back({std::move(record), place});
  const LoggedRecord& logged = records_.back();
  if (logged.record.status == TrialStatus::wrong_answer ||
      logged.record.reason.rfind("internal error", 0) == 0)
    report_.failure_files.push_back(write_failure(logged.record, task_, options_.log));
  if (options_.on_trial) options_.on_trial(logged);
  return logged;
}

double TuneSession::recent_gain(int window) const {
  if (best_us_ == 0 || best_after_.empty()) return 1;
  const size_t size = best_after_.size();
  const auto back = std::min(size - 1, static_cast<size_t>(window));
  const double before = best_after_[size - 1 - back];
  return before > 0 ? (before - best_us_) / before : 1;
}

ProgressState TuneSession::progress() const {
  ProgressState out;
  out.task = task_.name;
  out.trials = report_.trials;
  int64_t space = 0;
  for (const KnobSpace& s : space_.spaces()) space += std::min(s.size(), INT64_MAX / 2 - space);
  out.limited = options_.trials < kUnlimitedTrials;
  out.trials_wanted = std::min(options_.trials, std::max(space - report_.resumed, out.trials));
  for (const auto& [reason, count] : report_.reasons) out.failed += count;
  out.best_us = best_us_;
  if (const auto standard = latest_default()) out.default_us = median_us(standard->record);
  if (best_us_ > 0) out.gflops = task_.flops / best_us_ * 1e-3;
  out.elapsed_s = (now_us() - start_us_) * 1e-6;
  out.time_limit_s = options_.time_s;
  return out;
}

std::string TuneSession::failure_text() const {
  std::string out =
      fmt::format("{}: none of {} trials worked", task_.name, report_.trials + (default_ ? 1 : 0));
  if (!first_failure_.empty()) out += "\n  first failure: " + first_failure_;
  for (const auto& [reason, count] : report_.reasons)
    out += fmt::format("\n  {:4} times {}", count, reason);
  out += fmt::format(
      "\n  try: tenon show {}:1 --loops for what was tried; --threads 1; a larger time limit for a "
      "trial",
      options_.log);
  return out;
}

std::optional<LoggedRecord> TuneSession::latest_default() const {
  for (size_t k = records_.size(); k-- > 0;) {
    if (default_ && records_[k].record.trace == default_trace_ && can_be_best(records_[k].record))
      return records_[k];
  }
  return std::nullopt;
}

/// As it was timed first; 0: it was not.
double TuneSession::default_us() const {
  for (const LoggedRecord& r : records_)
    if (r.record.trace == default_trace_ && can_be_best(r.record)) return median_us(r.record);
  return 0;
}

double TuneSession::trial_s() const {
  constexpr double kLeastS = 0.01, kCalls = 6;
  return kLeastS + kCalls * default_us() * 1e-6;
}

}  // namespace tenon
