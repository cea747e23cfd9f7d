#include "autotvm/measure/build.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tenon/runtime/timer.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "autotvm/measure/child.h"
#include "autotvm/measure/message.h"

namespace tenon {
namespace {

// What the child says when there is no kernel: a head with one of these words, and the reason in
// the body.
constexpr const char* kRefused = "compile_error";
constexpr const char* kNoMemory = "out_of_memory";

struct Compiler {
  size_t index = 0;
  pid_t child = -1;
  int socket = -1;
  double deadline_us = 0;
};

Message compile_message(const Program& program, const CompileFn& compile) {
  try {
    return to_message(compile(program));
  } catch (const std::bad_alloc&) {
    return {kNoMemory, "the compiler ran out of memory"};
  } catch (const std::exception& e) {
    return {kRefused, e.what()};
  }
}

[[noreturn]] void be_compiler(pid_t parent, int socket, const Program& program,
                              const CompileFn& compile, const BuildOptions& options) {
  leave_with_parent(parent);
  limit_memory(options.memory_bytes);
  limit_cpu(options.timeout_s);
  send_message(socket, compile_message(program, compile));
  ::_exit(0);  // no destructors, no buffers of the parent's twice
}

Compiler start(size_t index, const Program& program, const CompileFn& compile,
               const BuildOptions& options) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw UserError(fmt::format("cannot start a compiler: {}", std::strerror(errno)));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) be_compiler(parent, ends[1], program, compile, options);
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw UserError(fmt::format("cannot start a compiler: {}", std::strerror(errno)));
  }
  return {index, child, ends[0], now_us() + options.timeout_s * 1e6};
}

Built finish(const Compiler& c, const BuildOptions& options) {
  Message message;
  const Received got = receive_message(c.socket, message, c.deadline_us, options.stop);
  ::close(c.socket);
  if (got != Received::message) ::kill(c.child, SIGKILL);
  const std::string end = reap(c.child);
  if (got == Received::timeout) {
    return {
        TrialStatus::compile_timeout, fmt::format("not compiled in {} s", options.timeout_s), {}};
  }
  if (got != Received::message) return {TrialStatus::compile_error, "the compiler " + end, {}};
  if (message.head == kRefused) return {TrialStatus::compile_error, message.body, {}};
  if (message.head == kNoMemory) return {TrialStatus::out_of_memory, message.body, {}};
  return {TrialStatus::ok, "", kernel_from_message(message)};
}

/// Waits until one of them has something to say, or its time is up, or a stop may have come.
void wait_any(const std::vector<Compiler>& running) {
  std::vector<pollfd> entries;
  double wait_us = 50000;
  for (const Compiler& c : running) {
    entries.push_back({c.socket, POLLIN, 0});
    wait_us = std::min(wait_us, std::max(0.0, c.deadline_us - now_us()));
  }
  ::poll(entries.data(), entries.size(), static_cast<int>(wait_us / 1000) + 1);
}

bool is_due(const Compiler& c) {
  pollfd entry{c.socket, POLLIN, 0};
  return ::poll(&entry, 1, 0) != 0 || now_us() >= c.deadline_us;
}

}  // namespace

std::vector<Built> build_all(const std::vector<const Program*>& programs, const CompileFn& compile,
                             const BuildOptions& options) {
  auto stopped = [&] { return options.stop && options.stop->load(); };
  std::vector<std::optional<Built>> results(programs.size());
  std::vector<Compiler> running;
  size_t next = 0;
  while (!running.empty() || (next < programs.size() && !stopped())) {
    while (!stopped() && next < programs.size() &&
           static_cast<int>(running.size()) < std::max(1, options.workers)) {
      running.push_back(start(next, *programs[next], compile, options));
      ++next;
    }
    if (!stopped()) wait_any(running);
    for (size_t r = running.size(); r-- > 0;) {
      if (!stopped() && !is_due(running[r])) continue;
      Built built = finish(running[r], options);
      if (!stopped()) results[running[r].index] = std::move(built);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(r));
    }
  }
  std::vector<Built> out;
  for (std::optional<Built>& built : results) {
    if (!built) break;
    out.push_back(std::move(*built));
  }
  return out;
}

}  // namespace tenon
