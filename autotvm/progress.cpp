#include "autotvm/progress.h"

#include <fmt/format.h>
#include <tenon/runtime/timer.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tenon {
namespace {

constexpr double kTerminalPeriodUs = 1e5, kPlainPeriodUs = 3e6;

}  // namespace

double projected_s(const ProgressState& state) {
  if (state.trials == 0) return -1;
  const double rate = state.elapsed_s / static_cast<double>(state.trials);
  double left =
      rate * static_cast<double>(std::max<int64_t>(state.trials_wanted - state.trials, 0));
  if (state.time_limit_s > 0)
    left = std::min(left, std::max(state.time_limit_s - state.elapsed_s, 0.0));
  return left;
}

std::string busy_text(const RunnerNotes& notes) {
  return fmt::format(
      "the machine was busy: while kernels were timed, other programs used {:.0f}% of a CPU and "
      "kernels waited for one {:.0f}% of the time; tune on a quiet machine for times to rely on",
      100 * notes.others, 100 * notes.waited);
}

std::string progress_text(const ProgressState& state) {
  std::string out = fmt::format("{}  {}", state.task, state.trials);
  if (state.limited) out += fmt::format("/{}", state.trials_wanted);
  out += " trials";
  if (state.failed > 0) out += fmt::format(" ({} failed)", state.failed);
  out += state.best_us > 0 ? fmt::format("  best {:.4g} us", state.best_us) : "  nothing yet";
  if (state.default_us > 0) out += fmt::format(" (default {:.4g} us)", state.default_us);
  if (state.gflops > 0) out += fmt::format("  {:.1f} GFLOP/s", state.gflops);
  if (state.peak_share > 0) out += fmt::format(", {:.0f}% of peak", 100 * state.peak_share);
  out += fmt::format("  {:.0f} s", state.elapsed_s);
  const double left = projected_s(state);
  if (left >= 0) out += fmt::format(", about {:.0f} s left", left);
  return out;
}

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const ProgressState& state) {
  if (quiet_) return;
  const std::string text = progress_text(state);
  const double now = now_us();
  if (now < next_us_) {
    if (terminal_) last_ = text;
    return;
  }
  next_us_ = now + (terminal_ ? kTerminalPeriodUs : kPlainPeriodUs);
  if (terminal_) {
    fmt::print(stderr, "\r{}\x1b[K", text);
    last_ = text;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

void ProgressLine::say(const std::string& text) {
  if (quiet_) return;
  finish();
  fmt::print(stderr, "{}\n", text);
}

void ProgressLine::finish(const ProgressState& state) {
  next_us_ = 0;
  show(state);
  finish();
}

void ProgressLine::finish() {
  if (quiet_ || last_.empty()) return;
  fmt::print(stderr, "\r{}\x1b[K\n", last_);
  last_.clear();
}

}  // namespace tenon
