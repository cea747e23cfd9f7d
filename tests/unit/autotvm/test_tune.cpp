#include <signal.h>
#include <sys/wait.h>
#include <tenon/autotvm/tune.h>
#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/files.h>
#include <tenon/support/rng.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>

#include "scratch.h"

using namespace tenon;
using Catch::Matchers::Contains;

// The whole path on this machine: templates, compiler, tenon-runner, log.
namespace {

Task small_task(const std::string& name) {
  const Axis i("i", 37), k("k", 130);
  const Tensor a = input("A", f32, {37, 130});
  Task task(name, compute(name, {i}, sum(a(i, k), k)), Target::host());
  task.flops = 37.0 * 130;
  task.templates = {{"split", [](Schedule& s, Knobs& knob) {
                       const int64_t f = knob.pick("f", {1, 2, 4, 8, 16, 32}, 1),
                                     g = knob.pick("g", {1, 2, 5, 10, 13, 26}, 1);
                       const bool unroll = knob.flag("unroll");
                       s.split("i", f);
                       const auto [o, i] = s.split("k", g);
                       if (unroll) s.unroll(i);
                     }}};
  return task;
}

}  // namespace

TEST_CASE("a task is tuned for real, and again from its log") {
  Scratch scratch;
  scratch.options.trials = 6;
  const TuneReport first = tune_with_report(small_task("t"), scratch.options);
  CHECK(first.trials == 6);
  CHECK(first.baseline.record.trial == 0);
  CHECK(first.best.record.check == CheckResult::passed);
  CHECK(median_us(first.best.record) <=
        median_us(first.baseline.record) + noise_us(first.baseline.record));
  const TuneReport second = tune_with_report(small_task("t"), scratch.options);
  CHECK(second.resumed > 6);
  CHECK(second.trials == 6);
  CHECK(load_log(scratch.options.log).warnings.empty());
}

TEST_CASE("candidates that pack a constant ahead are packed for outside of timing, and verified") {
  Scratch scratch;
  scratch.options.trials = 4;
  const Tensor a = input("A", f32, {13, 20}), b = constant("B", f32, {20, 37});
  const Axis i("i", 13), j("j", 37), k("k", 20);
  Task task("packs", compute("C", {i, j}, sum(a(i, k) * b(k, j), k)), Target::host());
  task.templates = {
      {"pack", [](Schedule& s, Knobs& knob) {
         const int64_t block = knob.pick("block", {4, 8, 16}, 1);
         s.pack("B", {{1, block, 0}, {0, 1, 0}, {1, 1, block}}, {.when = PackWhen::ahead});
       }}};
  const TuneReport report = tune_with_report(task, scratch.options);
  CHECK(report.trials == 2);  // and the default
  CHECK(report.best.record.check == CheckResult::passed);
  CHECK_THAT(report.best.record.trace, Contains(R"("when":"ahead")"));
  for (const LoggedRecord& r : load_log(scratch.options.log).records) {
    INFO(r.record.reason);
    CHECK((r.record.status == TrialStatus::ok || r.record.status == TrialStatus::outpaced));
  }
}

TEST_CASE("a task of symbolic extents is tuned at its sample sizes and runs at all sizes") {
  const Var m = symbol("m", {.low = 0, .high = 4096}), n = symbol("n");
  const Axis i("i", m), j("j", n), r("r", m), k("k", n);
  const Tensor a = input("A", f32, {m, n});
  const Tensor e = compute("E", {i, j}, exp(a(i, j)));
  Task task("rows", compute("Y", {r}, sum(e(r, k), k)), Target::host());
  Scratch scratch;
  scratch.options.trials = 4;
  CHECK_THROWS_WITH(tune(task, scratch.options),
                    Contains("the symbolic extent \"m\" has no sample size") &&
                        Contains("task.sample_sizes[\"m\"]"));
  task.sample_sizes = {{"m", 37}, {"n", 130}};
  const TuneReport report = tune_with_report(task, scratch.options);
  CHECK(report.best.record.check == CheckResult::passed);
  CHECK_THAT(report.best.record.args, Contains(R"("sample_sizes":{"m":37,"n":130})"));

  // Another sample is another question; without one any answer will do.
  const RecordStore store(load_log(scratch.options.log).records);
  RecordQuery query = record_query(task, 1);
  CHECK_FALSE(store.find(query)->adapted());
  Task other = task;
  other.sample_sizes["m"] = 38;
  CHECK(store.find(record_query(other, 1))->adapted());
  other.sample_sizes.clear();
  CHECK_FALSE(store.find(record_query(other, 1))->adapted());

  const Kernel kernel = compile(task, report.best.record);
  for (const int64_t rows : {0, 1, 5, 64}) {
    const Array x = full(f32, {rows, 9}, 0), y = zeros(f32, {rows});
    kernel(x, y);
    CHECK(y.to_doubles() == std::vector<double>(static_cast<size_t>(rows), 9.0));
  }
}

TEST_CASE("a time limit is kept") {
  Scratch scratch;
  scratch.options.trials = 100000;
  scratch.options.time_s = 1.5;
  const double start = now_us();
  tune(small_task("t"), scratch.options);
  CHECK((now_us() - start) * 1e-6 < 15);  // a busy machine is slow to start programs
}

TEST_CASE("trials go where the time of the whole is") {
  Scratch scratch;
  scratch.options.trials = 24;
  const std::vector<TuneReport> reports =
      tune_all({{small_task("t"), 1000}, {small_task("u"), 1}}, scratch.options);
  REQUIRE(reports.size() == 2);
  CHECK(reports[0].trials + reports[1].trials == 24);
  CHECK(reports[0].trials >= 20);
}

TEST_CASE("several tasks share a budget and each gets its default") {
  Scratch scratch;
  scratch.options.trials = 5;
  const std::vector<TuneReport> reports =
      tune_all({{small_task("t"), 3}, {small_task("u"), 1}}, scratch.options);
  REQUIRE(reports.size() == 2);
  for (const TuneReport& report : reports) {
    CHECK(report.baseline.record.trial == 0);
    CHECK(can_be_best(report.best.record));
  }
  CHECK(reports[0].trials + reports[1].trials == 5);
  CHECK(reports[0].best.record.program != reports[1].best.record.program);
}

TEST_CASE("a stop from a signal handler or another thread ends a real session") {
  Scratch scratch;
  std::atomic<bool> stop{false};
  scratch.options.trials = 1000;
  scratch.options.stop = &stop;
  int seen = 0;
  scratch.options.on_trial = [&](const LoggedRecord&) { stop = ++seen >= 3; };
  const TuneReport report = tune_with_report(small_task("t"), scratch.options);
  CHECK(report.interrupted);
  CHECK(load_log(scratch.options.log).records.size() >= 3);
}

namespace {

/// 1040 points, so that many sessions find something to do.
Task task_with_many_points() {
  Task task = small_task("t");
  task.templates = {{"split", [](Schedule& s, Knobs& knob) {
                       std::vector<int64_t> up_to_26;
                       for (int64_t k = 1; k <= 26; ++k) up_to_26.push_back(k);
                       const int64_t f = knob.pick("f", up_to_26, 1),
                                     g = knob.pick("g", {up_to_26.begin(), up_to_26.end() - 6}, 1);
                       const bool unroll = knob.flag("unroll");
                       s.split("i", f);
                       const auto [o, i] = s.split("k", g);
                       if (unroll) s.unroll(i);
                     }}};
  return task;
}

std::string text_of(const std::string& path) {
  const Result<std::string> text = read_file(path);
  return text ? text.value() : "";
}

/// Starts a session and kills it some time after it has logged a trial.
void tune_and_kill(const TuneOptions& options, useconds_t after_us) {
  const size_t before = text_of(options.log).size();
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      tune(task_with_many_points(), options);
    } catch (const std::exception& e) {  // the folder is the parent's
      std::fputs(e.what(), stderr);
    }
    ::_exit(0);
  }
  for (int waits = 0; waits < 60000 && text_of(options.log).size() == before; ++waits)
    ::usleep(1000);
  ::usleep(after_us);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace

// 3 times, or as often as TENON_KILLS says.
TEST_CASE("a session that is killed at random instants has lost no finished trial") {
  Scratch scratch;
  scratch.options.trials = 1000;
  const char* asked = std::getenv("TENON_KILLS");
  const int kills = asked ? std::atoi(asked) : 3;
  Rng rng(5);
  std::string kept;
  for (int round = 0; round < kills; ++round) {
    tune_and_kill(scratch.options, static_cast<useconds_t>(rng.below(200000)));
    const std::string now = text_of(scratch.options.log);
    REQUIRE(now.size() > kept.size());
    REQUIRE(now.substr(0, kept.size()) == kept);
    kept = now;
  }
  scratch.options.trials = 2;
  const size_t before = load_log(scratch.options.log).records.size();
  const TuneReport report = tune_with_report(task_with_many_points(), scratch.options);
  CHECK(report.resumed == static_cast<int64_t>(before));
  CHECK(report.trials == 2);
  CHECK(text_of(scratch.options.log).substr(0, kept.size()) == kept);
  std::multiset<std::string> traces;
  for (const LoggedRecord& r : load_log(scratch.options.log).records) {
    if (r.record.reason != "timed again beside the default schedule") traces.insert(r.record.trace);
  }
  for (const std::string& trace : traces) CHECK(traces.count(trace) == 1);
}
