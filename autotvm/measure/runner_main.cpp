// tenon-runner: loads, times and verifies kernels in a process of its own, so that a kernel that
// crashes or hangs harms nobody. Started by the tuner, which talks to it over descriptor 3;
// runner_process.h lists the requests. Descriptor 4 is the memory of the expected outputs.
#include <signal.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>

#include "autotvm/measure/child.h"
#include "autotvm/measure/crash_report.h"
#include "autotvm/measure/worker.h"

namespace tenon {
namespace {

using Json = nlohmann::json;

constexpr int kSocketFd = 3, kExpectedFd = 4;

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

RunnerSetup read_setup(const Message& message) {
  const Json j = Json::parse(message.head);
  RunnerSetup setup;
  setup.parameters = kernel_from_message(message).module.parameters;
  for (const auto& [name, range] : j.at("input_ranges").items())
    setup.input_ranges[name] = {range.at(0).get<int64_t>(), range.at(1).get<int64_t>()};
  setup.dims = j.at("dims").get<std::vector<int64_t>>();
  setup.seed = j.at("seed");
  setup.threads = j.at("threads");
  setup.tolerance = j.at("tolerance");
  setup.memory_bytes = j.at("memory_bytes");
  setup.writes_expected = j.at("expected") == "write";
  setup.expected_fd = kExpectedFd;
  return setup;
}

Json answer(std::unique_ptr<Worker>& worker, const Message& message) {
  const Json j = Json::parse(message.head);
  const std::string verb = j.at("do");
  Json reply = {{"status", "ok"}};
  if (verb == "setup") {
    worker = std::make_unique<Worker>(read_setup(message));
    limit_memory(worker->memory_limit_bytes());
    return reply;
  }
  TENON_CHECK(worker != nullptr, "\"{}\" before \"setup\"", verb);
  if (j.contains("limit_s")) limit_cpu(worker->cpu_limit_s(j.at("limit_s")));
  if (verb == "load") {
    worker->load(j.at("slot"), kernel_from_message(message));
  } else if (verb == "unload") {
    worker->unload(j.at("slot"));
  } else if (verb == "expected") {
    worker->make_expected(j.at("slot"));
  } else if (verb == "first") {
    reply["samples"] = Json::array({worker->first(j.at("slot"), j.at("outpaced_us"))});
  } else if (verb == "time") {
    reply["samples"] = worker->time(j.at("slots"), j.at("sample_us"), j.at("samples"));
  } else if (verb == "verify") {
    const Worker::Verdict verdict = worker->verify(j.at("slot"));
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

Json answer_or_reason(std::unique_ptr<Worker>& worker, const Message& message) {
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

int serve() {
  report_crashes(kSocketFd);
  std::unique_ptr<Worker> worker;
  Message message;
  while (receive_message(kSocketFd, message, std::numeric_limits<double>::infinity()) ==
         Received::message) {
    Json reply = answer_or_reason(worker, message);
    reply["rss_bytes"] = resident_bytes();
    if (!send_message(kSocketFd, {reply.dump(-1, ' ', false, Json::error_handler_t::replace), ""}))
      break;
  }
  ::_exit(0);  // a kernel may have broken what destructors would walk through
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
