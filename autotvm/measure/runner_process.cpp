#include "autotvm/measure/runner_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autotvm/measure/child.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr double kSetupTimeoutS = 120;  // fills the inputs, which may be gigabytes
constexpr double kEndTimeoutS = 30;     // ends a worker with all memory it took
constexpr int kSocketFd = 3, kSharedFd = 4;

Message request(const Json& head, std::string body = {}) { return {head.dump(), std::move(body)}; }

Json setup_json(const RunnerSetup& setup) {
  KernelObject description;
  description.module.parameters = setup.parameters;
  Json j = Json::parse(to_message(description).head);
  j["do"] = "setup";
  j["dims"] = setup.dims;
  j["threads"] = setup.threads;
  j["tolerance"] = setup.tolerance;
  j["memory_bytes"] = setup.memory_bytes;
  j["cold"] = setup.cold;
  j["expected"] = setup.writes_expected ? "write" : "read";
  return j;
}

RunnerReply parse_reply(const Message& message) {
  RunnerReply reply;
  const Json j = Json::parse(message.head);
  const std::optional<TrialStatus> status = parse_status(j.at("status").get<std::string>());
  TENON_CHECK(status.has_value(), "status {}", j.at("status").dump());
  reply.status = *status;
  reply.reason = j.value("reason", "");
  if (j.contains("check_error")) {
    reply.check_error = j["check_error"].is_null() ? std::numeric_limits<double>::quiet_NaN()
                                                   : j["check_error"].get<double>();
  }
  if (j.contains("samples")) reply.samples_us = j["samples"];
  if (j.contains("cpu")) {
    const std::vector<double> cpu = j["cpu"];
    reply.cpu = {cpu.at(0), cpu.at(1), cpu.at(2)};
  }
  reply.own_bytes = j.value("own_bytes", int64_t{0});
  reply.alive = !j.value("dying", false);
  return reply;
}

/// The child gets the two descriptors as 3 and 4, /dev/null for input and output, its own process
/// group (Ctrl-C at the terminal is for the tuner), and no blocked signals.
pid_t spawn(const std::string& program, int socket, int shared) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, socket, kSocketFd);
  posix_spawn_file_actions_adddup2(&files, shared, kSharedFd);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::string name = program, parent = std::to_string(::getpid());
  char* arguments[] = {name.data(), parent.data(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, program.c_str(), &files, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw UserError(fmt::format("cannot start {}: {}", program, std::strerror(error)));
  return child;
}

/// A descriptor above those that the child is given, so that none is overwritten by another.
int moved_up(int fd) {
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, 10);
  ::close(fd);
  return moved;
}

}  // namespace

RunnerProcess::RunnerProcess(const std::string& program, const RunnerSetup& setup,
                             const std::atomic<bool>* stop)
    : program_(program), setup_(setup), stop_(stop) {
  start_runner();
}

RunnerProcess::~RunnerProcess() { end_runner(); }

void RunnerProcess::start_runner() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw UserError(fmt::format("cannot start {}: {}", program_, std::strerror(errno)));
  runner_socket_ = ends[0];
  const int theirs = moved_up(ends[1]);
  const int shared = ::fcntl(setup_.shared_fd, F_DUPFD_CLOEXEC, 10);
  try {
    child_ = spawn(program_, theirs, shared);
  } catch (...) {
    for (int fd : {theirs, shared, runner_socket_}) ::close(fd);
    runner_socket_ = -1;
    throw;
  }
  ::close(theirs);
  ::close(shared);
  const RunnerReply reply = ask_runner(request(setup_json(setup_)), kSetupTimeoutS);
  if (reply.stopped || reply.status == TrialStatus::ok) return;
  end_runner();
  throw UserError(fmt::format("{} cannot be set up: {}", program_, reply.reason));
}

void RunnerProcess::end_runner() {
  if (worker_socket_ >= 0) end_worker(true);
  if (runner_socket_ >= 0) ::close(runner_socket_);
  runner_socket_ = -1;
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  reap(child_);
  child_ = -1;
}

void RunnerProcess::start_worker() {
  if (child_ < 0) start_runner();
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw UserError(fmt::format("cannot start a worker: {}", std::strerror(errno)));
  worker_socket_ = ends[0];
  const bool sent = send_message(runner_socket_, request({{"do", "start"}})) &&
                    send_descriptor(runner_socket_, ends[1]);
  ::close(ends[1]);
  Message answer;
  const double until = now_us() + kSetupTimeoutS * 1e6;
  if (sent && receive_message(runner_socket_, answer, until) == Received::message) return;
  end_runner();  // somebody ended it: the next request starts another
}

/// How the worker ended; with `kill` it is made to.
std::string RunnerProcess::end_worker(bool kill) {
  ::close(worker_socket_);
  worker_socket_ = -1;
  Message answer;
  const double until = now_us() + kEndTimeoutS * 1e6;
  if (send_message(runner_socket_, request({{"do", "end"}, {"kill", kill}})) &&
      receive_message(runner_socket_, answer, until) == Received::message)
    return parse_reply(answer).reason;
  end_runner();
  return "was lost with tenon-runner, which has ended";
}

void RunnerProcess::renew() {
  if (worker_socket_ >= 0) end_worker(true);
}

RunnerReply RunnerProcess::ask_runner(const Message& message, double timeout_s) {
  RunnerReply reply;
  Message answer;
  Received got = Received::closed;
  if (send_message(runner_socket_, message))
    got = receive_message(runner_socket_, answer, now_us() + timeout_s * 1e6, stop_);
  if (got == Received::message) return parse_reply(answer);
  reply.stopped = got == Received::stopped;
  reply.status = TrialStatus::run_error;
  reply.reason = got == Received::timeout ? "it does not answer" : "it has ended";
  end_runner();
  return reply;
}

RunnerReply RunnerProcess::ask(const Message& message, double timeout_s) {
  RunnerReply reply;
  reply.alive = false;
  if (worker_socket_ < 0) start_worker();
  Message answer;
  Received got = Received::closed;
  if (worker_socket_ >= 0 && send_message(worker_socket_, message))
    got = receive_message(worker_socket_, answer, now_us() + timeout_s * 1e6, stop_);
  switch (got) {
    case Received::message:
      reply = parse_reply(answer);
      if (!reply.alive) end_worker(true);
      return reply;
    case Received::stopped:
      reply.stopped = true;
      if (worker_socket_ >= 0) end_worker(true);
      return reply;
    case Received::timeout:
      reply.status = TrialStatus::run_timeout;
      reply.reason = fmt::format("did not finish in {:.3g} s", timeout_s);
      end_worker(true);
      return reply;
    case Received::closed:
      break;
  }
  // Dead by itself: not killed, for the signal would come too late for one that has closed.
  reply.status = TrialStatus::run_error;
  reply.reason = worker_socket_ < 0 ? "the runner has ended" : "the kernel " + end_worker(false);
  return reply;
}

RunnerReply RunnerProcess::load(int slot, const KernelObject& object) {
  Message message = to_message(object);
  Json head = Json::parse(message.head);
  head["do"] = "load";
  head["slot"] = slot;
  return ask(request(head, std::move(message.body)), kSetupTimeoutS);
}

RunnerReply RunnerProcess::make_expected(int slot, double timeout_s) {
  return ask(request({{"do", "expected"}, {"slot", slot}, {"limit_s", timeout_s}}), timeout_s);
}

RunnerReply RunnerProcess::first(int slot, double outpaced_us, double timeout_s) {
  return ask(
      request(
          {{"do", "first"}, {"slot", slot}, {"outpaced_us", outpaced_us}, {"limit_s", timeout_s}}),
      timeout_s);
}

RunnerReply RunnerProcess::verify(int slot, double timeout_s) {
  return ask(request({{"do", "verify"}, {"slot", slot}, {"limit_s", timeout_s}}), timeout_s);
}

RunnerReply RunnerProcess::time(const std::vector<int>& slots, double sample_us, int samples,
                                double timeout_s, double behind) {
  return ask(request({{"do", "time"},
                      {"slots", slots},
                      {"sample_us", sample_us},
                      {"samples", samples},
                      {"behind", behind},
                      {"limit_s", timeout_s}}),
             timeout_s);
}

RunnerReply RunnerProcess::unload(int slot) {
  if (worker_socket_ < 0) return {};  // it is gone with its worker
  return ask(request({{"do", "unload"}, {"slot", slot}}), kSetupTimeoutS);
}

std::string find_runner_program() {
  Dl_info self{};
  std::error_code problem;
  fs::path module = fs::read_symlink("/proc/self/exe", problem);
  if (::dladdr(reinterpret_cast<const void*>(&find_runner_program), &self) != 0 && self.dli_fname &&
      fs::path(self.dli_fname).is_absolute())
    module = self.dli_fname;
  std::vector<std::string> places;
  for (const fs::path& folder :
       {module.parent_path(), module.parent_path() / "../bin", fs::path(TENON_INSTALLED_BIN)}) {
    const fs::path program = (folder / "tenon-runner").lexically_normal();
    if (::access(program.c_str(), X_OK) == 0) return program.string();
    places.push_back(program.string());
  }
  throw UserError(fmt::format(
      "tuning needs the program tenon-runner, which is in none of\n  {}\n  try: install Tenon, or "
      "put tenon-runner beside this program",
      join(places, "\n  ")));
}

}  // namespace tenon
