#include "autotvm/measure/crash_report.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tenon {
namespace {

struct Watched {
  char name[64] = {};
  uintptr_t first = 0;
  size_t bytes = 0;
};

// Plain memory: a signal handler may touch nothing else.
std::array<Watched, 64> watched;
volatile size_t watched_count = 0;
volatile int report_socket = -1;

constexpr uintptr_t kNear = 1 << 20;

/// "12 bytes past the end of C" in `text`; empty when no array is near.
void describe_address(uintptr_t address, char* text, size_t size) {
  uintptr_t best = kNear;
  text[0] = '\0';
  for (size_t k = 0; k < watched_count; ++k) {
    const Watched& w = watched[k];
    const uintptr_t last = w.first + w.bytes;
    if (address >= last && address - last < best) {
      best = address - last;
      std::snprintf(text, size, "%zu bytes past the end of %s", static_cast<size_t>(best), w.name);
    } else if (address < w.first && w.first - address < best) {
      best = w.first - address;
      std::snprintf(text, size, "%zu bytes before the start of %s", static_cast<size_t>(best),
                    w.name);
    } else if (address >= w.first && address < last) {
      best = 0;
      std::snprintf(text, size, "inside %s, an input that may only be read", w.name);
    }
  }
}

void on_signal(int signal, siginfo_t* info, void*) {
  char where[160] = "", reply[512];
  if (signal == SIGSEGV || signal == SIGBUS)
    describe_address(reinterpret_cast<uintptr_t>(info->si_addr), where, sizeof where);
  const char* abbreviation = ::sigabbrev_np(signal);
  const int size = std::snprintf(
      reply, sizeof reply,
      "{\"status\":\"run_error\",\"reason\":\"the kernel crashed (SIG%s%s%s)\",\"dying\":true}",
      abbreviation ? abbreviation : "?", where[0] ? ": touched memory " : "", where);
  const uint64_t sizes[2] = {static_cast<uint64_t>(size), 0};
  if (::send(report_socket, sizes, sizeof sizes, MSG_NOSIGNAL) == sizeof sizes)
    (void)!::send(report_socket, reply, static_cast<size_t>(size), MSG_NOSIGNAL);
  ::_exit(128 + signal);
}

}  // namespace

void report_crashes(int socket) {
  report_socket = socket;
  static std::array<char, 1 << 16> stack;  // for the signal of a stack that overflowed
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGXCPU})
    ::sigaction(signal, &action, nullptr);
}

void watch_array(const char* name, const void* data, size_t bytes) {
  if (watched_count == watched.size()) return;
  Watched& w = watched[watched_count];
  size_t out = 0;  // names stand in JSON text
  for (const char* c = name; *c && out + 1 < sizeof w.name; ++c) {
    const bool plain = *c >= ' ' && *c < 127 && *c != '"' && *c != '\\';
    w.name[out++] = plain ? *c : '_';
  }
  w.name[out] = '\0';
  w.first = reinterpret_cast<uintptr_t>(data);
  w.bytes = bytes;
  watched_count = watched_count + 1;
}

void forget_arrays() { watched_count = 0; }

}  // namespace tenon
