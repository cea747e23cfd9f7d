#include <tenon/autotvm/tune.h>

#include <algorithm>
#include <memory>

#include "autotvm/budget.h"

namespace tenon {
namespace {

constexpr int kGainWindow = 12;  // trials over which a task's gain is judged

/// Weight times what one more round of trials may win of this task, in microseconds of the whole:
/// what its last trials won, and where they won nothing the less the more were made.
double promise(const TuneSession& session, double weight) {
  const double unknown = 1.0 / (4.0 + static_cast<double>(session.trials()));
  const double gain = std::max(session.recent_gain(kGainWindow), unknown);
  const double us = session.best_us() > 0 ? session.best_us() : 1e6;
  return weight * us * gain;
}

/// Sessions of several tasks and what all of them take together.
class Whole {
 public:
  Whole(const std::vector<WeightedTask>& tasks, const TuneOptions& options)
      : tasks_(tasks), options_(options), deadline_(options.time_s), line_(options.quiet) {}

  void start() {
    TuneOptions each = options_;
    each.time_s = 0;  // the whole has the limits
    for (const WeightedTask& t : tasks_) {
      if (options_.stop && options_.stop->load()) return;
      sessions_.push_back(std::make_unique<TuneSession>(t.task, each));
      sessions_.back()->compare_for(compare_s());
      sessions_.back()->start();
      line_.show(state(sessions_.size() - 1));
    }
  }

  /// A batch of trials of the task that promises most; false when there is nothing to do.
  bool step() {
    const int64_t left = options_.trials - trials();
    const double kept_back_s = finish_s();
    if (left <= 0 || deadline_.passed(kept_back_s)) return false;
    size_t best = sessions_.size();
    double most = -1;
    for (size_t k = 0; k < sessions_.size(); ++k) {
      if (sessions_[k]->finished()) continue;
      const double value = promise(*sessions_[k], tasks_[k].weight);
      if (value > most) {
        most = value;
        best = k;
      }
    }
    if (best == sessions_.size()) return false;
    TuneSession& next = *sessions_[best];
    next.begin_until(deadline_.us(kept_back_s));
    next.run(static_cast<int>(std::min<int64_t>(batch_size(next), left)));
    line_.show(state(best));
    mention_busy(next, line_, said_busy_);
    return true;
  }

  std::vector<TuneReport> finish() {
    std::vector<TuneReport> out;
    for (const auto& session : sessions_) out.push_back(report_of(*session));
    if (!sessions_.empty()) line_.finish(state(sessions_.size() - 1));
    return out;
  }

 private:
  static TuneReport report_of(TuneSession& session) {
    try {
      return session.finish();
    } catch (const TuneError& e) {
      TuneReport failed = e.report;
      failed.failure = e.what();
      return failed;
    }
  }

  /// A tenth of the time goes into the final comparisons of all tasks.
  double compare_s() const {
    if (options_.time_s <= 0) return 1;
    return std::clamp(0.1 * options_.time_s / static_cast<double>(tasks_.size()), 0.1, 1.0);
  }

  double finish_s() const {
    double all = 0;
    for (const auto& session : sessions_) all += session->finish_s();
    return all;
  }

  int64_t trials() const {
    int64_t all = 0;
    for (const auto& session : sessions_) all += session->trials();
    return all;
  }

  /// Of the whole: times are sums over all runs of the tasks started so far.
  ProgressState state(size_t now) const {
    ProgressState out;
    double flops = 0;
    for (size_t k = 0; k < sessions_.size(); ++k) {
      const ProgressState each = sessions_[k]->progress();
      out.failed += each.failed;
      out.best_us += tasks_[k].weight * each.best_us;
      out.default_us += tasks_[k].weight * each.default_us;
      flops += tasks_[k].weight * sessions_[k]->task().flops;
    }
    out.task = tasks_.size() == 1 ? tasks_[now].task.name
                                  : fmt::format("task {} of {} ({})", now + 1, tasks_.size(),
                                                tasks_[now].task.name);
    out.trials = trials();
    out.trials_wanted = options_.trials;
    out.limited = options_.trials < kUnlimitedTrials;
    if (out.best_us > 0) out.gflops = flops / out.best_us * 1e-3;
    out.elapsed_s = deadline_.elapsed_s();
    out.time_limit_s = options_.time_s;
    add_peak_share(out, tasks_[now].task.target.cores, options_);
    return out;
  }

  const std::vector<WeightedTask>& tasks_;
  const TuneOptions& options_;
  Deadline deadline_;
  ProgressLine line_;
  std::vector<std::unique_ptr<TuneSession>> sessions_;
  bool said_busy_ = false;
};

}  // namespace

std::vector<TuneReport> tune_all(const std::vector<WeightedTask>& tasks,
                                 const TuneOptions& options) {
  Whole whole(tasks, options);
  whole.start();
  while (whole.step()) continue;
  return whole.finish();
}

}  // namespace tenon
