#include "cli/signals.h"

#include <csignal>

namespace tenon {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_interrupt(int signal_number) {
  g_interrupted = true;
  std::signal(signal_number, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

const std::atomic<bool>& interrupted() { return g_interrupted; }

}  // namespace tenon
