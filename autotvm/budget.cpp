#include "autotvm/budget.h"

#include <tenon/target/peaks.h>

#include <algorithm>
#include <limits>

namespace tenon {
namespace {

/// GFLOP/s that this machine's multiply-adds reach with so many threads.
double peak_gflops(int threads) {
  const Peaks& peaks = cached_peaks();
  if (threads <= 1) return peaks.fma_gflops_1;
  return peaks.fma_gflops_all * std::min(threads, peaks.threads) / std::max(1, peaks.threads);
}

}  // namespace

double Deadline::us(double kept_back_s) const {
  if (time_s_ <= 0) return std::numeric_limits<double>::infinity();
  return start_us_ + 1e6 * (time_s_ - std::min(kept_back_s, 0.25 * time_s_));
}

int batch_size(const TuneSession& session) {
  constexpr double kSeenEveryS = 2;
  const int cores = session.task().target.cores;
  const double trial_s = std::max(session.trial_s(), 1e-3);
  return std::clamp(static_cast<int>(kSeenEveryS / trial_s), std::min(cores, 16),
                    std::clamp(4 * cores, 4, 16));
}

void add_peak_share(ProgressState& state, int threads, const TuneOptions& options) {
  if (state.gflops > 0 && !options.quiet)
    state.peak_share = state.gflops / peak_gflops(options.threads > 0 ? options.threads : threads);
}

void mention_busy(const TuneSession& session, ProgressLine& line, bool& said) {
  const RunnerNotes notes = session.runner_notes();
  if (said || !notes.disturbs()) return;
  said = true;
  line.say(busy_text(notes));
}

}  // namespace tenon
