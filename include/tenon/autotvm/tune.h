#pragma once
#include <tenon/compile/task.h>
#include <tenon/records/lookup.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// What is searched: the task's own templates, the sketches that rules write for its formula (as if
/// it had no template: the default is then the generic one), or both in one race.
enum class SpaceKind : uint8_t { both, templates, sketches };
/// "both", "templates" or "sketches"; UserError for another word.
SpaceKind parse_space_kind(const std::string& word);

struct TuneOptions {
  /// Trials to make in this call, whatever their status; with a log that has some already: so many
  /// more. 0: only the default schedule, where the log lacks it. For tune_all(): of all tasks
  /// together, beside their defaults.
  int64_t trials = 100;
  /// Seconds after which no new trial starts; 0: no limit. For tune_all(): of all tasks together.
  double time_s = 0;
  /// A task is settled, and its search ends, when so many trials in a row have won less than noise
  /// (0.5%) of its best; 0: never.
  int64_t patience = 0;
  /// Where trials are kept and resumed from; empty: tuning_logs/NAME.jsonl. What is tried next is a
  /// function of the log and the seed: a session that was killed ends, resumed with the same seed,
  /// as it would have undisturbed. Several sessions may work on one log at once and share what
  /// they find.
  std::string log;
  uint64_t seed = 0;
  int threads = 0;  ///< that kernels are measured with; 0: all allowed cores
  std::string search = "guided";
  SpaceKind space = SpaceKind::both;
  /// File of a ranker that knows other tasks; empty: the shipped one, on CPUs; "none":
  /// the draft score and this session's trials alone.
  std::string ranker;
  double trial_timeout_s = 10;  ///< for one call of a candidate
  /// Kernels are timed with their arguments out of the caches. Records of the two ways are never
  /// compared.
  bool cold = false;
  /// No progress on stderr. On a terminal it is one line that changes; else a line every few
  /// seconds.
  bool quiet = false;
  /// Set by a signal handler: the trial in progress is dropped, all finished ones are kept.
  const std::atomic<bool>* stop = nullptr;
  /// Called with each record as it was logged.
  std::function<void(const LoggedRecord&)> on_trial = {};
};

/// What a tuning session did.
struct TuneReport {
  LoggedRecord best;      ///< never slower than the default beyond noise
  LoggedRecord baseline;  ///< the default schedule, timed in turns with the best
  int64_t trials = 0;     ///< made in this session
  int64_t resumed = 0;    ///< found in the log
  double seconds = 0;
  bool interrupted = false;
  bool space_used_up = false;
  bool settled = false;  ///< ended early: nothing was to be won (TuneOptions::patience)
  std::string failure;   ///< where no trial worked: the first failure, how often what, what to try
  std::map<std::string, int64_t> statuses;  ///< of this session: "ok" -> 17, ...
  std::map<std::string, int64_t> reasons;   ///< why trials failed, shortened -> how many
  /// Why points were dropped before any trial, by their forecast -> how many.
  std::map<std::string, int64_t> dropped;
  std::vector<std::string> warnings;  ///< of the log that was resumed: what of it is not used, why
  std::vector<std::string> remarks;   ///< for a person: a busy machine, too little time
  std::map<std::string, double> stage_s;  ///< where the time went: "compile" -> 3.2, ...
  /// One for each wrong answer and each bug of ours: `tenon replay FILE` reproduces it.
  std::vector<std::string> failure_files;
};

/// No trial of the task worked: the first failure, the histogram of reasons, and what to try.
/// Exit code 1.
class TuneError : public Error {
 public:
  TuneError(const std::string& message, TuneReport report_so_far)
      : Error(message), report(std::move(report_so_far)) {}
  TuneReport report;  ///< with an empty best.where.path
};

/// Measures schedules of the task on this machine and keeps every trial in the log. UserError for a
/// log that cannot be written (before any trial), another machine's target, or symbolic extents
/// without sample sizes; TuneError when nothing worked; InternalError when the unscheduled kernel
/// itself is wrong.
TuneReport tune_with_report(const Task& task, const TuneOptions& options = {});

/// tune_with_report(...).best.record
Record tune(const Task& task, const TuneOptions& options = {});

struct WeightedTask {
  Task task;
  double weight = 1;  ///< how often it runs in the whole
};

/// Several tasks under one budget: each first gets its default schedule, then trials go where
/// weight * expected gain is largest. One report a task, in order; a task of which nothing worked
/// has an empty best.where.path and its `failure`, and does not stop the others. An empty
/// options.log means one log a task.
std::vector<TuneReport> tune_all(const std::vector<WeightedTask>& tasks,
                                 const TuneOptions& options = {});

}  // namespace tenon
