#pragma once
#include <tenon/autotvm/runner.h>
#include <tenon/autotvm/search.h>
#include <tenon/autotvm/tune.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autotvm/claims.h"
#include "autotvm/forecast.h"
#include "autotvm/measure/stage_clock.h"
#include "autotvm/progress.h"
#include "autotvm/space.h"

namespace tenon {

/// What a record is found by when its point is proposed again: the trace, or, where the template
/// was refused and there is none, the point.
std::string log_key(TrialStatus status, const std::string& template_name, const std::string& knobs,
                    const std::string& trace);

/// What a search learns of a record; nothing: it failed.
std::optional<double> outcome_of(const Record& r);

/// Tuning of one task: what is known, what is tried next, what is kept. Neither measures by itself
/// (that is the runner) nor decides what to propose (that is the search).
class TuneSession {
 public:
  TuneSession(const TuneSession&) = delete;  // the forecasts point into the space
  /// Opens the log, resumes from it, surveys the space. Throws as tune_with_report() does. `runner`
  /// null: the local one.
  TuneSession(const Task& task, const TuneOptions& options, std::unique_ptr<Runner> runner = {});

  /// The default schedule, where the log lacks it; with a log, its best as the one to beat.
  void start();
  /// At most `count` more trials. Does nothing when finished().
  void run(int count);
  /// Nothing is left to try, `options.trials` are made, everything fails, or stopped.
  bool finished() const;
  /// No trial is begun after this instant of now_us(), nor started in run().
  void begin_until(double us) { runner_->begin_until(us); }
  /// Times the fastest and the default in turns, until the best of all is one that was timed so,
  /// then that and the default once more where it was chosen among several, and reports the last
  /// turn's times. TuneError when nothing worked.
  TuneReport finish();

  const Task& task() const { return task_; }
  int64_t trials() const { return report_.trials; }
  double best_us() const { return best_us_; }  ///< 0: nothing worked yet
  /// By how much the best of the last `window` trials improved on what was best before, as a share.
  double recent_gain(int window) const;
  bool everything_fails() const;
  /// The last `options.patience` trials won nothing to speak of.
  bool settled() const;
  /// The task with the first failure and a histogram of the reasons, for a person.
  std::string failure_text() const;
  ProgressState progress() const;
  /// How long finish() times kernels in all, unless calls are long.
  void compare_for(double seconds) { compare_s_ = seconds; }
  /// Seconds that finish() takes, about.
  double finish_s() const;
  /// Seconds that a trial takes, about: by the first time of the default, which a session that is
  /// resumed knows too.
  double trial_s() const;
  RunnerNotes runner_notes() const { return runner_->notes(); }

 private:
  /// A proposal of the search that takes a place in a batch.
  struct Slot {
    SpacePoint at;
    std::string trace;
    std::optional<size_t> candidate;     ///< to be measured
    std::optional<Measurement> refused;  ///< it cannot be scheduled; neither: the log has it
    std::optional<double> us;            ///< what the log says
  };

  void resume();
  void tell_of_others(const std::vector<LoggedRecord>& records);
  void hear_others();
  void stop_replay();
  bool take_logged(const std::string& key, std::optional<double>& us);
  void take(const std::vector<Slot>& slots, const std::vector<Measurement>& results);
  void learn(const SpacePoint& at, const std::string& trace, std::optional<double> us);
  bool stopped() const { return options_.stop && options_.stop->load(); }
  std::vector<Slot> next_slots(int count, std::vector<Candidate>& candidates);
  bool fill_slot(const SpacePoint& at, std::vector<Slot>& slots,
                 std::vector<Candidate>& candidates);
  void drop_known(std::vector<Slot>& slots, std::vector<Candidate>& candidates);
  void note(const SpacePoint& at, const std::string& trace, const Measurement& m);
  const LoggedRecord& keep(Record record);
  Record new_record(const std::string& template_name, const Point& point, const std::string& trace,
                    const Measurement& m) const;
  void count_status(const Record& record);
  std::optional<Candidate> candidate_of(const Record& record) const;
  std::optional<LoggedRecord> latest_default() const;
  double default_us() const;
  bool long_calls() const;
  std::vector<LoggedRecord> contenders() const;
  bool compare(const std::vector<LoggedRecord>& contenders, double seconds);
  bool choose();
  void confirm();
  void remark();

  Task task_;
  TuneOptions options_;
  RecordQuery query_;
  TaskSpace space_;
  DraftForecaster forecast_;
  std::string ranker_warning_;
  std::optional<Candidate> default_;  // nothing: the default template refuses
  std::string default_trace_;
  std::unique_ptr<Search> search_;
  std::unique_ptr<Runner> runner_;
  std::optional<RecordLog> log_;
  std::vector<LoggedRecord> records_;  // of this task on this machine, in the log's order
  std::map<std::string, std::optional<double>> known_us_;  // by trace; nothing: it failed
  /// Trials in the log of this search's own, by log_key(), until the search proposes them again.
  std::map<std::string, std::optional<double>> logged_us_;
  std::optional<Claims> claims_;
  int64_t loaded_line_ = 0;         // the last of the log that was read at the start
  std::vector<double> best_after_;  // best time after each trial of this session
  TuneReport report_;
  std::string first_failure_;
  int64_t next_trial_ = 0;
  int64_t worked_ = 0;
  double best_us_ = 0;
  double start_us_ = 0;
  std::string best_trace_;
  StageClock clock_;
  int64_t comparison_ = 0;  // the latest
  double compare_s_ = 1;
};

}  // namespace tenon
