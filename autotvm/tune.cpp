#include <tenon/autotvm/tune.h>
#include <tenon/runtime/timer.h>
#include <tenon/target/peaks.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "autotvm/session.h"

namespace tenon {
namespace {

constexpr int kGainWindow = 12;  // trials over which a task's gain is judged

/// Trials compiled together: enough for all cores, few enough that something is seen every 2 s.
int batch_size(const TuneSession& session) {
  constexpr double kSeenEveryS = 2;
  const int cores = session.task().target.cores;
  const double trial_s = std::max(session.trial_s(), 1e-3);
  return std::clamp(static_cast<int>(kSeenEveryS / trial_s), std::min(cores, 16),
                    std::clamp(4 * cores, 4, 16));
}

/// GFLOP/s that this machine's multiply-adds reach with so many threads.
double peak_gflops(int threads) {
  const Peaks& peaks = cached_peaks();
  if (threads <= 1) return peaks.fma_gflops_1;
  return peaks.fma_gflops_all * std::min(threads, peaks.threads) / std::max(1, peaks.threads);
}

ProgressState state_of(const TuneSession& session, const TuneOptions& options, double elapsed_s) {
  ProgressState state = session.progress();
  state.elapsed_s = elapsed_s;
  if (state.gflops > 0 && !options.quiet) {
    const int threads = options.threads > 0 ? options.threads : session.task().target.cores;
    state.peak_share = state.gflops / peak_gflops(threads);
  }
  return state;
}

/// When no new trial may start. What the final comparison takes is kept back.
class Deadline {
 public:
  explicit Deadline(double time_s) : time_s_(time_s) {}
  double elapsed_s() const { return (now_us() - start_us_) * 1e-6; }
  /// In now_us().
  double us(double kept_back_s) const {
    if (time_s_ <= 0) return std::numeric_limits<double>::infinity();
    return start_us_ + 1e6 * (time_s_ - std::min(kept_back_s, 0.25 * time_s_));
  }
  bool passed(double kept_back_s) const { return now_us() >= us(kept_back_s); }

 private:
  double time_s_;
  double start_us_ = now_us();
};

/// Says once that the machine is busy.
void mention_busy(const TuneSession& session, ProgressLine& line, bool& said) {
  const RunnerNotes notes = session.runner_notes();
  if (said || !notes.disturbs()) return;
  said = true;
  line.say(busy_text(notes));
}

/// Weight times what more trials of this task may win, in microseconds of the whole.
double promise(const TuneSession& session, double weight) {
  // Without a gain in sight, the more a task was tried the less is expected of it.
  const double unknown = 1.0 / (4.0 + static_cast<double>(session.trials()));
  const double gain = std::max(session.recent_gain(kGainWindow), unknown);
  const double us = session.best_us() > 0 ? session.best_us() : 1e6;
  return weight * us * gain;
}

TuneReport finished_report(TuneSession& session) {
  try {
    return session.finish();
  } catch (const TuneError& e) {
    TuneReport failed = e.report;
    failed.failure = e.what();
    return failed;
  }
}

}  // namespace

SpaceKind parse_space_kind(const std::string& word) {
  if (word == "both") return SpaceKind::both;
  if (word == "templates") return SpaceKind::templates;
  if (word == "sketches") return SpaceKind::sketches;
  throw UserError(fmt::format(
      "there is no space \"{}\"\n  what can be searched: both, templates, sketches", word));
}

TuneReport tune_with_report(const Task& task, const TuneOptions& options) {
  const Deadline deadline(options.time_s);
  TuneSession session(task, options);
  ProgressLine line(options.quiet);
  auto state = [&] { return state_of(session, options, deadline.elapsed_s()); };
  session.start();
  line.show(state());
  bool said_busy = false;
  while (!session.finished() && !deadline.passed(session.finish_s())) {
    session.begin_until(deadline.us(session.finish_s()));
    session.run(batch_size(session));
    line.show(state());
    mention_busy(session, line, said_busy);
  }
  TuneReport report = session.finish();
  line.finish(state());
  return report;
}

Record tune(const Task& task, const TuneOptions& options) {
  return tune_with_report(task, options).best.record;
}

std::vector<TuneReport> tune_all(const std::vector<WeightedTask>& tasks,
                                 const TuneOptions& options) {
  const Deadline deadline(options.time_s);
  ProgressLine line(options.quiet);
  std::vector<std::unique_ptr<TuneSession>> sessions;
  double kept_back_s = 0;
  for (const WeightedTask& t : tasks) {
    sessions.push_back(std::make_unique<TuneSession>(t.task, options));
    sessions.back()->start();
    kept_back_s += sessions.back()->finish_s();
    line.show(state_of(*sessions.back(), options, deadline.elapsed_s()));
  }
  bool said_busy = false;
  while (!deadline.passed(kept_back_s)) {
    TuneSession* next = nullptr;
    double most = -1;
    for (size_t k = 0; k < sessions.size(); ++k) {
      if (sessions[k]->finished()) continue;
      const double value = promise(*sessions[k], tasks[k].weight);
      if (value > most) {
        most = value;
        next = sessions[k].get();
      }
    }
    if (!next) break;
    next->begin_until(deadline.us(kept_back_s));
    next->run(batch_size(*next));
    line.show(state_of(*next, options, deadline.elapsed_s()));
    mention_busy(*next, line, said_busy);
  }
  std::vector<TuneReport> out;
  for (const auto& session : sessions) out.push_back(finished_report(*session));
  return out;
}

}  // namespace tenon
