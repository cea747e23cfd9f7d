// tenon-runner: loads, times and verifies kernels in a process of its own, so that a kernel that
// crashes or hangs harms nobody. Started by the tuner, which talks to it over descriptor 3;
// runner_process.h lists the requests. Descriptor 4 is the memory of the arguments.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>

#include "autotvm/measure/child.h"
#include "autotvm/measure/crash_report.h"
#include "autotvm/measure/worker.h"

namespace tenon {
namespace {

using Json = nlohmann::json;

constexpr int kSocketFd = 3, kSharedFd = 4;

RunnerSetup read_setup(const Message& message) {
  const Json j = Json::parse(message.head);
  RunnerSetup setup;
  setup.parameters = kernel_from_message(message).module.parameters;
  setup.dims = j.at("dims").get<std::vector<int64_t>>();
  setup.threads = j.at("threads");
  setup.tolerance = j.at("tolerance");
  setup.memory_bytes = j.at("memory_bytes");
  setup.writes_expected = j.at("expected") == "write";
  setup.cold = j.at("cold");
  setup.shared_fd = kSharedFd;
  return setup;
}

Json answer(Worker& worker, const Message& message) {
  const Json j = Json::parse(message.head);
  const std::string verb = j.at("do");
  Json reply = {{"status", "ok"}};
  if (j.contains("limit_s")) limit_cpu(worker.cpu_limit_s(j.at("limit_s")));
  if (verb == "load") {
    worker.load(j.at("slot"), kernel_from_message(message));
  } else if (verb == "unload") {
    worker.unload(j.at("slot"));
  } else if (verb == "expected") {
    worker.make_expected(j.at("slot"));
  } else if (verb == "first") {
    reply["samples"] = Json::array({worker.first(j.at("slot"), j.at("outpaced_us"))});
  } else if (verb == "time") {
    CpuUse cpu;
    reply["samples"] =
        worker.time(j.at("slots"), j.at("sample_us"), j.at("samples"), j.at("behind"), cpu);
    reply["cpu"] = {cpu.wall_us, cpu.waited_us, cpu.others_us};
  } else if (verb == "verify") {
    const Worker::Verdict verdict = worker.verify(j.at("slot"));
    reply["status"] = name(verdict.status);
    reply["reason"] = verdict.reason;
    reply["check_error"] = verdict.error;
  } else {
    TENON_CHECK(false, "unknown request \"{}\"", verb);
  }
  return reply;
}

Json failure(TrialStatus status, const std::string& reason) {
  return {{"status", name(status)}, {"reason", reason}};
}

Json answer_or_reason(Worker& worker, const Message& message) {
  try {
    return answer(worker, message);
  } catch (const std::bad_alloc&) {
    return failure(TrialStatus::out_of_memory, "more memory than a trial may have");
  } catch (const UserError& e) {  // arrays and workspaces that do not fit
    return failure(TrialStatus::out_of_memory, e.what());
  } catch (const std::exception& e) {
    return failure(TrialStatus::run_error, e.what());
  }
}

std::string text_of(const Json& j) {
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A kernel may start processes, not leave them running, nor go on in one.
void end_if_forked(pid_t self, int socket) {
  if (::getpid() != self) ::_exit(1);
  if (::waitpid(-1, nullptr, WNOHANG | __WALL) < 0) return;
  Json reply = failure(TrialStatus::run_error, "the kernel started a process of its own");
  reply["dying"] = true;
  send_message(socket, {text_of(reply), ""});
  ::_exit(1);
}

/// The worker: answers until its end of the tuner is closed.
[[noreturn]] void work(const RunnerSetup& setup, const TaskArrays& arrays, int socket,
                       pid_t runner) {
  leave_with_parent(runner);
  ::setpgid(0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  report_crashes(socket);
  Worker worker(setup, arrays);
  limit_memory(worker.memory_limit_bytes());
  const pid_t self = ::getpid();
  Message message;
  while (receive_message(socket, message, std::numeric_limits<double>::infinity()) ==
         Received::message) {
    Json reply = answer_or_reason(worker, message);
    end_if_forked(self, socket);
    reply["own_bytes"] = own_bytes();
    if (!send_message(socket, {text_of(reply), ""})) break;
  }
  ::_exit(0);  // a kernel may have broken what destructors would walk through
}

/// Makes the arrays, then starts and ends workers, one at a time.
class Host {
 public:
  Json answer(const Message& message) {
    const Json j = Json::parse(message.head);
    const std::string verb = j.at("do");
    if (verb == "setup") {
      setup_ = read_setup(message);
      arrays_ = std::make_unique<TaskArrays>(setup_);
      return {{"status", "ok"}};
    }
    TENON_CHECK(arrays_ != nullptr, "\"{}\" before \"setup\"", verb);
    if (verb == "start") return start();
    TENON_CHECK(verb == "end", "unknown request \"{}\"", verb);
    return end(j.at("kill"));
  }

 private:
  Json start() {
    const int socket = receive_descriptor(kSocketFd);
    TENON_CHECK(socket >= 0 && worker_ < 0, "a worker cannot be started");
    const pid_t self = ::getpid();
    worker_ = ::fork();
    if (worker_ == 0) {
      ::close(kSocketFd);
      work(setup_, *arrays_, socket, self);
    }
    ::close(socket);
    TENON_CHECK(worker_ > 0, "no process for a worker");
    return {{"status", "ok"}};
  }

  Json end(bool kill) {
    std::string how = "has ended";
    if (worker_ > 0) {
      if (kill) ::kill(worker_, SIGKILL);
      how = reap(worker_);
      ::kill(-worker_, SIGKILL);  // what it left, and then what that left elsewhere
      end_descendants();
    }
    worker_ = -1;
    return {{"status", "ok"}, {"reason", how}};
  }

  RunnerSetup setup_;
  std::unique_ptr<TaskArrays> arrays_;
  pid_t worker_ = -1;
};

int serve() {
  limit_files();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Host host;
  Message message;
  while (receive_message(kSocketFd, message, std::numeric_limits<double>::infinity()) ==
         Received::message) {
    Json reply;
    try {
      reply = host.answer(message);
    } catch (const std::exception& e) {
      reply = failure(TrialStatus::run_error, e.what());
    }
    if (!send_message(kSocketFd, {text_of(reply), ""})) break;
  }
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const std::optional<int64_t> parent =
      argc == 2 ? tenon::parse_int(argv[1]) : std::optional<int64_t>();
  if (!parent) {
    std::fputs("tenon-runner is started by the tuner, not by hand; see tenon tune --help\n",
               stderr);
    return 2;
  }
  tenon::leave_with_parent(static_cast<pid_t>(*parent));
  return tenon::serve();
}
