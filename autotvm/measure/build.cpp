#include "autotvm/measure/build.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/program_json.h>
#include <tenon/ir/visit.h>
#include <tenon/runtime/timer.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "autotvm/measure/child.h"
#include "autotvm/measure/message.h"

namespace tenon {
namespace {

// What the child says when there is no kernel: a head with one of these words, and the reason in
// the body.
constexpr const char* kRefused = "compile_error";
constexpr const char* kNoMemory = "out_of_memory";
constexpr const char* kOwnBytes = "own_bytes";

Message compile_message(const std::string& program, const CompileFn& compile) {
  try {
    Message out = to_message(compile(program_from_json(program)));
    nlohmann::json head = nlohmann::json::parse(out.head);
    head[kOwnBytes] = own_bytes();
    out.head = head.dump();
    return out;
  } catch (const std::bad_alloc&) {
    return {kNoMemory, "the compiler ran out of memory"};
  } catch (const std::exception& e) {
    return {kRefused, e.what()};
  }
}

/// About how much code a loop tree becomes: its nodes, those of loops that are expanded as often.
double code_of(const Stmt& body) {
  constexpr int64_t kLanes = 16;
  double total = 0;
  auto statement = [&](const Stmt& s) {
    ++total;
    const For* n = s.as<For>();
    if (!n || (n->mark != LoopMark::unroll && n->mark != LoopMark::vectorize)) return true;
    const int64_t extent = as_int(n->extent).value_or(1);
    const int64_t copies = n->mark == LoopMark::unroll ? extent : extent / kLanes;
    total += static_cast<double>(std::max<int64_t>(1, copies)) * code_of(n->body);
    return false;
  };
  walk(body, statement, [&](const Expr&) { return ++total > 0; });
  return total;
}

/// Numbers of the programs, the largest first: what is begun last is soon done, and no core waits
/// long for another.
std::vector<size_t> largest_first(const std::vector<const Program*>& programs) {
  std::vector<size_t> order(programs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<double> code;
  for (const Program* p : programs) code.push_back(programs.size() > 1 ? code_of(p->body) : 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return code[a] > code[b]; });
  return order;
}

/// Compiles what comes over the socket until its other end is closed.
[[noreturn]] void be_compiler(pid_t parent, int socket, const CompileFn& compile,
                              const BuildOptions& options) {
  leave_with_parent(parent);
  limit_memory(options.memory_bytes);
  Message program;
  while (receive_message(socket, program, std::numeric_limits<double>::infinity()) ==
         Received::message) {
    limit_cpu(options.timeout_s);
    if (!send_message(socket, compile_message(program.body, compile))) break;
  }
  ::_exit(0);  // no destructors, no buffers of the parent's twice
}

}  // namespace

CompilerPool::CompilerPool(CompileFn compile, const BuildOptions& options)
    : compile_(std::move(compile)),
      options_(options),
      compilers_(static_cast<size_t>(std::max(1, options.workers))) {
  for (Compiler& c : compilers_) start(c);
}

CompilerPool::~CompilerPool() {
  for (Compiler& c : compilers_) end(c);
}

void CompilerPool::start(Compiler& c) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw UserError(fmt::format("cannot start a compiler: {}", std::strerror(errno)));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_compiler(parent, ends[1], compile_, options_);
  }
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw UserError(fmt::format("cannot start a compiler: {}", std::strerror(errno)));
  }
  c = Compiler{};
  c.child = child;
  c.socket = ends[0];
  ++started_;
}

void CompilerPool::end(Compiler& c) {
  if (c.child < 0) return;
  ::close(c.socket);
  ::kill(c.child, SIGKILL);
  reap(c.child);
  c = Compiler{};
}

void CompilerPool::send(Compiler& c, const Program& program, size_t index) {
  if (c.child < 0) start(c);
  c.program = index;
  c.busy = true;
  c.deadline_us = now_us() + options_.timeout_s * 1e6;
  send_message(c.socket, {"", to_json(program)});  // one that is gone: receive() says how
}

/// How a compiler ended that said nothing.
Built CompilerPool::lost(Compiler& c) {
  ::close(c.socket);
  const std::string how = reap(c.child);
  c = Compiler{};
  return {TrialStatus::compile_error, "the compiler " + how, {}};
}

Built CompilerPool::receive(Compiler& c) {
  Message message;
  const Received got = receive_message(c.socket, message, c.deadline_us, options_.stop);
  c.busy = false;
  if (got == Received::closed) return lost(c);
  if (got == Received::timeout) {
    end(c);
    return {
        TrialStatus::compile_timeout, fmt::format("not compiled in {} s", options_.timeout_s), {}};
  }
  if (got == Received::stopped) return {};  // dropped by who asked
  if (message.head == kRefused) return {TrialStatus::compile_error, message.body, {}};
  if (message.head == kNoMemory) return {TrialStatus::out_of_memory, message.body, {}};
  Built built{TrialStatus::ok, "", kernel_from_message(message)};
  const int64_t own = nlohmann::json::parse(message.head).value(kOwnBytes, int64_t{0});
  if (c.first_bytes == 0) c.first_bytes = own;
  if (own > c.first_bytes + options_.growth_bytes) end(c);
  return built;
}

/// Waits until one of them has something to say, or its time is up, or a stop may have come.
void CompilerPool::wait_any() const {
  std::vector<pollfd> entries;
  double wait_us = 50000;
  for (const Compiler& c : compilers_) {
    if (!c.busy) continue;
    entries.push_back({c.socket, POLLIN, 0});
    wait_us = std::min(wait_us, std::max(0.0, c.deadline_us - now_us()));
  }
  ::poll(entries.data(), entries.size(), static_cast<int>(wait_us / 1000) + 1);
}

std::vector<Built> CompilerPool::build(const std::vector<const Program*>& programs,
                                       double until_us) {
  const std::vector<size_t> order = largest_first(programs);
  std::vector<std::optional<Built>> results(programs.size());
  size_t next = 0, open = 0;
  auto begins = [&] { return next < programs.size() && !stopped() && now_us() < until_us; };
  while (!stopped() && (open > 0 || begins())) {
    for (Compiler& c : compilers_) {
      if (c.busy || !begins()) continue;
      send(c, *programs[order[next]], order[next]);
      ++next;
      ++open;
    }
    wait_any();
    for (Compiler& c : compilers_) {
      pollfd entry{c.socket, POLLIN, 0};
      if (!c.busy || (::poll(&entry, 1, 0) == 0 && now_us() < c.deadline_us)) continue;
      const size_t index = c.program;
      Built built = receive(c);
      if (!stopped()) results[index] = std::move(built);
      --open;
    }
  }
  for (Compiler& c : compilers_)
    if (c.busy) end(c);  // stopped
  std::vector<Built> out;
  for (std::optional<Built>& built : results) {
    if (!built) break;
    out.push_back(std::move(*built));
  }
  return out;
}

}  // namespace tenon
