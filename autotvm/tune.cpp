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

/// Trials compiled together: as many compilers as there are cores, twice over.
int batch_size(const Task& task) { return std::clamp(2 * task.target.cores, 2, 16); }

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
  bool passed(double kept_back_s) const {
    return time_s_ > 0 && elapsed_s() + std::min(kept_back_s, 0.25 * time_s_) >= time_s_;
  }

 private:
  double time_s_;
  double start_us_ = now_us();
};

double comparison_s(const TuneSession& session) {
  return 0.1 + 40e-6 * std::max(1000.0, session.best_us());
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
  while (!session.finished() && !deadline.passed(comparison_s(session))) {
    session.run(batch_size(task));
    line.show(state());
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
    kept_back_s += comparison_s(*sessions.back());
    line.show(state_of(*sessions.back(), options, deadline.elapsed_s()));
  }
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
    next->run(batch_size(next->task()));
    line.show(state_of(*next, options, deadline.elapsed_s()));
  }
  std::vector<TuneReport> out;
  for (const auto& session : sessions) out.push_back(finished_report(*session));
  return out;
}

}  // namespace tenon
