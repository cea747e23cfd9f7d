#include "cli/progress_line.h"

#include <fmt/format.h>
#include <tenon/runtime/timer.h>
#include <unistd.h>

namespace tenon {
namespace {

constexpr double kTerminalEvery_us = 1e5, kPlainEvery_us = 5e6;

}  // namespace

ProgressLine::ProgressLine(std::string what, bool quiet)
    : what_(std::move(what)),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      started_us_(now_us()),
      last_us_(started_us_) {}

ProgressLine::~ProgressLine() {
  if (shown_ && terminal_) fmt::print(stderr, "\r\x1b[K");
}

void ProgressLine::show(size_t done, size_t all) {
  const double now = now_us();
  if (quiet_ || now - last_us_ < (terminal_ ? kTerminalEvery_us : kPlainEvery_us)) return;
  last_us_ = now;
  shown_ = true;
  const double elapsed_s = (now - started_us_) * 1e-6;
  const double left_s =
      done > 0 ? elapsed_s / static_cast<double>(done) * static_cast<double>(all - done) : 0;
  fmt::print(stderr, "{}{} {}/{}  {:.0f} s, about {:.0f} s left{}", terminal_ ? "\r\x1b[K" : "",
             what_, done, all, elapsed_s, left_s, terminal_ ? "" : "\n");
  std::fflush(stderr);
}

std::function<void(size_t, size_t)> ProgressLine::callback() {
  return [this](size_t done, size_t all) { show(done, all); };
}

}  // namespace tenon
