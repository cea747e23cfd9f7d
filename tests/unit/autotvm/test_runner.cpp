#include <signal.h>
#include <sys/wait.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "autotvm/measure/cpu_use.h"
#include "autotvm/measure/runner_process.h"
#include "row_sums.h"
#include "scratch.h"

using namespace tenon;
namespace fs = std::filesystem;
using Catch::Matchers::Contains;

namespace {

std::vector<Measurement> measure(const std::vector<std::string>& names,
                                 const RunnerOptions& options = quick_options()) {
  std::vector<Candidate> candidates;
  for (const std::string& name : names) candidates.push_back(named_candidate(name));
  return local_runner_with(row_sums(), options, compile_row_sums)->measure(candidates);
}

/// How many processes have that name; each is sent `signal` (0: none).
int processes_called(const std::string& name, int signal = 0) {
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::optional<int64_t> pid = parse_int(entry.path().filename().string());
    std::string called;
    std::getline(std::ifstream(entry.path() / "comm") >> std::ws, called);
    if (!pid || called != name) continue;
    ++count;
    if (signal != 0) ::kill(static_cast<pid_t>(*pid), signal);
  }
  return count;
}

struct Fault {
  const char* name;
  TrialStatus status;
  CheckResult check;
  const char* telling;
};

}  // namespace

TEST_CASE("a kernel is timed and verified") {
  const std::vector<Measurement> results = measure({"right"});
  REQUIRE(results.size() == 1);
  const Measurement& m = results.front();
  CHECK(m.reason == "");
  CHECK(m.status == TrialStatus::ok);
  CHECK(m.check == CheckResult::passed);
  CHECK(m.check_error < 1);
  CHECK(m.samples_us.size() == 5);
  for (double us : m.samples_us) CHECK((us > 0 && us < 1e6));
}

// Each costs its own trial and nothing else: the right kernel after it still passes.
TEST_CASE("faulty kernels") {
  const std::vector<Fault> faults = {
      {"wrong", TrialStatus::wrong_answer, CheckResult::failed, "C[36] is"},
      {"lazy", TrialStatus::wrong_answer, CheckResult::failed, "C[36] is nan"},
      {"null_pointer", TrialStatus::run_error, CheckResult::not_run, "crashed (SIGSEGV"},
      {"overrun", TrialStatus::run_error, CheckResult::not_run, "0 bytes past the end of C"},
      {"underrun", TrialStatus::run_error, CheckResult::not_run, "4 bytes before the start of A"},
      {"writes_input", TrialStatus::run_error, CheckResult::not_run, "inside A"},
      {"aborts", TrialStatus::run_error, CheckResult::not_run, "crashed (SIGABRT"},
      {"returns_status", TrialStatus::run_error, CheckResult::not_run, "returned status 3"},
      {"kills", TrialStatus::run_error, CheckResult::not_run, "crashed (SIGKILL"},
      {"forks", TrialStatus::run_error, CheckResult::not_run, "started a process"},
      {"daemonizes", TrialStatus::run_error, CheckResult::not_run, "started a process"},
      {"doubles", TrialStatus::run_error, CheckResult::not_run, "started a process"},
      {"huge_workspace", TrialStatus::out_of_memory, CheckResult::not_run, "workspace"},
      {"compiler_refuses", TrialStatus::compile_error, CheckResult::not_run, "register tile"},
      {"compiler_crashes", TrialStatus::compile_error, CheckResult::not_run,
       "the compiler crashed (SIGABRT"}};
  std::vector<std::string> names;
  for (const Fault& fault : faults) {
    names.push_back(fault.name);
    names.push_back("right");
  }
  RunnerOptions options = quick_options();
  options.outpaced = 1e6;  // a busy machine is no fault
  const std::vector<Measurement> results = measure(names, options);
  REQUIRE(results.size() == names.size());
  for (size_t k = 0; k < faults.size(); ++k) {
    const Measurement& m = results[2 * k];
    INFO(faults[k].name);
    CHECK(name(m.status) == name(faults[k].status));
    CHECK(name(m.check) == name(faults[k].check));
    CHECK_THAT(m.reason, Contains(faults[k].telling));
    CHECK(m.samples_us.empty());
    CHECK(results[2 * k + 1].reason == "");
    CHECK(results[2 * k + 1].check == CheckResult::passed);
  }
}

TEST_CASE("a kernel that hangs is ended") {
  SECTION("at the time that a call may take") {
    RunnerOptions options = quick_options();
    options.timeout_s = 0.5;
    const std::vector<Measurement> results = measure({"hang", "right"}, options);
    REQUIRE(results.size() == 2);
    CHECK(results[0].status == TrialStatus::run_timeout);
    CHECK_THAT(results[0].reason, Contains("did not finish"));
    CHECK(results[1].status == TrialStatus::ok);
  }
  SECTION("long before, where another is known to be fast") {
    const std::vector<Measurement> results = measure({"right", "hang", "right"});
    REQUIRE(results.size() == 3);
    CHECK(results[1].status == TrialStatus::outpaced);
    CHECK_THAT(results[1].reason, Contains("not finished after"));
    CHECK(results[2].status == TrialStatus::ok);
  }
}

// Whatever a kernel starts ends with it, wherever it hides.
TEST_CASE("no process of a kernel is left") {
  Scratch scratch;
  const std::string own_name = "tr" + std::to_string(::getpid());  // of these processes alone
  RunnerOptions options = quick_options();
  options.program = scratch.folder + "/" + own_name;
  fs::create_symlink(find_runner_program(), options.program);
  const auto runner = local_runner_with(row_sums(), options, compile_row_sums);
  for (const char* name : {"forks", "daemonizes", "doubles"}) {
    INFO(name);
    runner->measure({named_candidate(name)});
    CHECK(processes_called(own_name) == 1);  // the runner, without a worker
  }
  runner->measure({named_candidate("right")});
  CHECK(processes_called(own_name) == 2);
}

TEST_CASE("a runner that was killed is replaced") {
  Scratch scratch;
  const std::string own_name = "tk" + std::to_string(::getpid());
  RunnerOptions options = quick_options();
  options.program = scratch.folder + "/" + own_name;
  fs::create_symlink(find_runner_program(), options.program);
  const auto runner = local_runner_with(row_sums(), options, compile_row_sums);
  CHECK(runner->measure({named_candidate("right")}).at(0).status == TrialStatus::ok);
  CHECK(processes_called(own_name, SIGKILL) == 2);
  // What was loaded is lost, and at most the trial at hand.
  const std::vector<Measurement> after =
      runner->measure({named_candidate("right"), named_candidate("right")});
  REQUIRE(after.size() == 2);
  CHECK(after[1].status == TrialStatus::ok);
}

TEST_CASE("a worker that grew is replaced, and measuring goes on") {
  RunnerOptions options = quick_options();
  options.outpaced = 1e6;
  options.growth_bytes = 8 << 20;
  const std::vector<std::string> names(40, "leaks");  // 480 MB in one worker, 256 are allowed
  for (const Measurement& m : measure(names, options)) {
    CHECK(m.reason == "");
    CHECK(m.status == TrialStatus::ok);
  }
}

TEST_CASE("a compiler that hangs is ended") {
  RunnerOptions options = quick_options();
  options.compile_timeout_s = 1;
  const std::vector<Measurement> results = measure({"compiler_hangs", "right"}, options);
  REQUIRE(results.size() == 2);
  CHECK(results[0].status == TrialStatus::compile_timeout);
  CHECK(results[1].status == TrialStatus::ok);
}

#ifndef __SANITIZE_ADDRESS__  // memory cannot be limited there
TEST_CASE("a kernel that takes all memory is stopped by its limit") {
  const std::vector<Measurement> results = measure({"hungry", "right"});
  REQUIRE(results.size() == 2);
  CHECK(results[0].status == TrialStatus::run_error);
  CHECK_THAT(results[0].reason, Contains("status 12"));
  CHECK(results[1].status == TrialStatus::ok);
}
#endif

TEST_CASE("a candidate far behind the best is outpaced and never verified") {
  const std::vector<Measurement> results = measure({"right", "slow"});
  REQUIRE(results.size() == 2);
  CHECK(results[1].status == TrialStatus::outpaced);
  CHECK(results[1].check == CheckResult::not_run);
  CHECK_THAT(results[1].reason, Contains("the best takes"));
}

TEST_CASE("two candidates are compared in alternation") {
  const auto runner = local_runner_with(row_sums(), quick_options(), compile_row_sums);
  const std::vector<Measurement> both =
      runner->compare({named_candidate("right"), named_candidate("slow")}, 0.1);
  REQUIRE(both.size() == 2);
  const Measurement &fast = both[0], &slow = both[1];
  REQUIRE(fast.status == TrialStatus::ok);
  REQUIRE(slow.status == TrialStatus::ok);
  CHECK(fast.samples_us.size() == slow.samples_us.size());
  CHECK(slow.samples_us.front() > 5 * fast.samples_us.front());
  SECTION("unless one is wrong") {
    const std::vector<Measurement> again =
        runner->compare({named_candidate("right"), named_candidate("wrong")}, 0.1);
    REQUIRE(again.size() == 2);
    const Measurement &right = again[0], &wrong = again[1];
    CHECK(wrong.status == TrialStatus::wrong_answer);
    CHECK(wrong.samples_us.empty());
    CHECK(right.status == TrialStatus::ok);
  }
}

TEST_CASE("cold calls find their arguments in memory") {
  RunnerOptions options = quick_options();
  const std::vector<double> warm = measure({"right"}, options).at(0).samples_us;
  options.cold = true;
  const Measurement cold = measure({"right"}, options).at(0);
  REQUIRE(cold.status == TrialStatus::ok);
  CHECK(*std::min_element(cold.samples_us.begin(), cold.samples_us.end()) >
        *std::min_element(warm.begin(), warm.end()));
}

TEST_CASE("a busy neighbour is noticed") {
  const CpuWatch watch;
  const double until = now_us() + 3e5;
  const pid_t neighbour = ::fork();
  if (neighbour == 0) {
    while (now_us() < until + 1e6) continue;
    ::_exit(0);
  }
  while (now_us() < until) continue;
  const CpuUse use = watch.stop();
  ::kill(neighbour, SIGKILL);
  ::waitpid(neighbour, nullptr, 0);
  CHECK(use.wall_us > 2.9e5);
  CHECK(use.others_us + use.waited_us > 0.3 * use.wall_us);
}

TEST_CASE("several threads") {
  RunnerOptions options = quick_options();
  options.threads = 2;
  CHECK(measure({"right"}, options).front().status == TrialStatus::ok);
}

TEST_CASE("a stop ends measuring at once, with what is finished") {
  std::atomic<bool> stop{true};
  RunnerOptions options = quick_options();
  options.stop = &stop;
  CHECK(measure({"right", "right"}, options).empty());
}

TEST_CASE("a missing tenon-runner is a user's error") {
  RunnerOptions options = quick_options();
  options.program = "/nowhere/tenon-runner";
  CHECK_THROWS_WITH(measure({"right"}, options), Contains("cannot start /nowhere/tenon-runner"));
}

TEST_CASE("an unscheduled kernel that disagrees with the interpreter is our bug") {
  const auto runner = local_runner_with(row_sums(), quick_options(), [](const Program& program) {
    return program.name == "row_sums" ? faulty_kernel("wrong") : compile_row_sums(program);
  });
  CHECK_THROWS_AS(runner->measure({named_candidate("right")}), InternalError);
  CHECK_THROWS_WITH(runner->measure({named_candidate("right")}),
                    Contains("disagrees with the interpreter: C[36]"));
}
