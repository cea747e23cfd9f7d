#include <tenon/autotvm/failure.h>
#include <tenon/compile/compile.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <set>

#include "fake_session.h"

using namespace tenon;
using Catch::Matchers::Contains;

TEST_CASE("the default is trial 0 and so many more are made") {
  Scratch scratch;
  scratch.options.trials = 6;
  const TuneReport report = tune_fake(tunable(), scratch.options, honest());
  CHECK(report.trials == 6);
  const LoadedLog log = load_log(scratch.options.log);
  REQUIRE(log.records.size() >= 7);
  for (int64_t k = 0; k < 7; ++k) CHECK(log.records[static_cast<size_t>(k)].record.trial == k);
  const Record& first = log.records[0].record;
  CHECK(first.knobs == R"({"f":1,"g":1})");
  CHECK(first.template_name == "split");
  CHECK(first.program == program_hash(row_sums().program));
  CHECK(first.seed == 7);
  CHECK(first.threads == 1);
  CHECK_FALSE(first.llvm.empty());
  CHECK(median_us(report.best.record) < 1000);
  CHECK(report.baseline.record.knobs == first.knobs);
}

TEST_CASE("tuning resumes from its log and repeats no trial") {
  Scratch scratch;
  scratch.options.trials = 5;
  tune_fake(tunable(), scratch.options, honest());
  const size_t before = load_log(scratch.options.log).records.size();
  int measured = 0;
  const TuneReport report = tune_fake(tunable(), scratch.options, honest(&measured));
  CHECK(report.resumed == static_cast<int64_t>(before));
  CHECK(report.trials == 5);
  CHECK(measured == 6);  // and the best so far once more, as the one to beat
  std::multiset<std::string> traces;
  for (const LoggedRecord& r : load_log(scratch.options.log).records) {
    if (r.record.reason.empty()) traces.insert(r.record.trace);
  }
  CHECK(traces.size() == 11);
  for (const std::string& trace : traces) CHECK(traces.count(trace) == 1);
}

TEST_CASE("zero trials measure just the default") {
  Scratch scratch;
  scratch.options.trials = 0;
  const TuneReport report = tune_fake(tunable(), scratch.options, honest());
  CHECK(report.best.record.trial == 0);
  CHECK(load_log(scratch.options.log).records.size() == 1);
}

TEST_CASE("a space that is used up ends the session") {
  Scratch scratch;
  scratch.options.trials = 1000;
  const TuneReport report = tune_fake(tunable(), scratch.options, honest());
  CHECK(report.space_used_up);
  CHECK(report.trials == 24);
  CHECK(report.best.record.knobs == R"({"f":7,"g":7})");
}

TEST_CASE("a winner that loses beside the default is not returned") {
  Scratch scratch;
  scratch.options.trials = 10;
  auto runner = honest();
  runner->compared_us = [](const Candidate& c) { return us_of(c) == 1000 ? 100.0 : 130.0; };
  const TuneReport report = tune_fake(tunable(), scratch.options, std::move(runner));
  // Those that were never compared stand with times of other minutes, which decide nothing.
  CHECK(report.best.record.trial == 0);
  SECTION("and a tie keeps the default") {
    Scratch other;
    other.options.trials = 1;
    auto tied = honest();
    tied->compared_us = [](const Candidate&) { return 100.0; };
    CHECK(tune_fake(tunable(), other.options, std::move(tied)).best.record.trial == 0);
  }
}

TEST_CASE("default and best are reported as they were timed in turns, and the log agrees") {
  Scratch scratch;
  scratch.options.trials = 10;
  auto runner = honest();
  runner->compared_us = [](const Candidate& c) { return 2 * us_of(c); };
  const Task task = tunable();
  const TuneReport report = tune_fake(task, scratch.options, std::move(runner));
  CHECK(report.best.record.comparison > 0);
  CHECK(report.best.record.comparison == report.baseline.record.comparison);
  CHECK(median_us(report.baseline.record) == 2000);
  const auto logged =
      best_record(load_log(scratch.options.log).records, record_query(task, 1)).value();
  CHECK(logged.where == report.best.where);
}

TEST_CASE("a lucky sample is no win") {
  Scratch scratch;
  scratch.options.trials = 24;  // all there are
  auto runner = runner_of([](const Candidate& c) {
    const bool lucky = c.point.number("f") == 1 && c.point.number("g") == 7;
    return worked(lucky ? 20 : us_of(c));  // 20.4 is the best, 142.9 is what it takes
  });
  runner->compared_us = us_of;
  const TuneReport report = tune_fake(tunable(), scratch.options, std::move(runner));
  CHECK(report.best.record.knobs == R"({"f":7,"g":7})");
  CHECK(median_us(report.best.record) == Approx(1000.0 / 49));
}

TEST_CASE("a session with cold caches takes nothing from one with warm ones") {
  Scratch scratch;
  scratch.options.trials = 4;
  tune_fake(tunable(), scratch.options, honest());
  scratch.options.cold = true;
  const TuneReport cold = tune_fake(tunable(), scratch.options, honest());
  CHECK(cold.resumed == 0);
  CHECK(cold.best.record.cold);
  CHECK(cold.baseline.record.cold);
  CHECK(tune_fake(tunable(), scratch.options, honest()).resumed >= 5);
}

TEST_CASE("a busy machine and a time that was too short are remarked") {
  Scratch scratch;
  scratch.options.trials = 4;
  auto runner = honest();
  runner->said.timed_s = 10;
  runner->said.others = 0.5;
  const TuneReport busy = tune_fake(tunable(), scratch.options, std::move(runner));
  REQUIRE(busy.remarks.size() == 1);
  CHECK_THAT(busy.remarks[0], Contains("other programs used 50% of a CPU"));
  scratch.options.time_s = 1;
  TuneSession session(tunable(), scratch.options, honest());
  session.start();
  const TuneReport late = session.finish();
  REQUIRE(late.remarks.size() == 1);
  CHECK_THAT(late.remarks[0], Contains("no trial was begun"));
}

TEST_CASE("failures are kept with their reason, counted, and never the best") {
  Scratch scratch;
  scratch.options.trials = 24;
  const TuneReport report =
      tune_fake(tunable(), scratch.options, runner_of([](const Candidate& c) {
                  if (c.point.number("f") == 7)
                    return failed(TrialStatus::run_error, "the kernel crashed (SIGSEGV)");
                  if (c.point.number("g") == 7)
                    return failed(TrialStatus::wrong_answer, "C[3] is 1, expected 2");
                  return worked(us_of(c));
                }));
  CHECK(report.statuses.at("run_error") == 5);
  CHECK(report.statuses.at("wrong_answer") == 4);
  CHECK(report.reasons.at("wrong_answer: C[#] is #, expected #") == 4);
  CHECK(report.best.record.knobs == R"({"f":5,"g":5})");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.folder)) {
    const std::string path = entry.path().string();
    if (path.find("failure") == std::string::npos) continue;
    ++files;
    CHECK(read_record({path, 1}).status == TrialStatus::wrong_answer);
    CHECK_THAT(read_file(path).value(), Contains("for k in 0..130"));
    const auto kept = task_of_failure(read_record({path, 1}), Target::host());
    REQUIRE(kept);
    CHECK(print(kept->program) == print(tunable().program));
  }
  CHECK(files == 4);
  CHECK(report.failure_files.size() == 4);
  CHECK_FALSE(task_of_failure(report.best.record, Target::host()));
}

TEST_CASE("steps that are refused cost a trial each and say why") {
  Scratch scratch;
  scratch.options.search = "evolutionary";
  scratch.options.trials = 4;
  const Task task = tunable([](Schedule& s, Knobs& knob) {
    const int64_t f = knob.pick("f", {1, 2, 3, 5, 7}, 1);
    s.split(f == 1 ? "i" : "nowhere", f);
  });
  const TuneReport report =
      tune_fake(task, scratch.options, runner_of([](const Candidate&) { return worked(10); }));
  CHECK(report.statuses.at("refused") == 4);
  CHECK(report.best.record.trial == 0);
  CHECK_THAT(load_log(scratch.options.log).records[1].record.reason, Contains("nowhere"));
}

TEST_CASE("a task is settled when trials win no more") {
  Scratch scratch;
  scratch.options.trials = 1000;
  scratch.options.patience = 6;
  scratch.options.search = "grid";
  // The 4th of 25 points is the fastest: six more trials, then it ends.
  int made = 0;
  const TuneReport report =
      tune_fake(tunable(), scratch.options,
                runner_of([&](const Candidate&) { return worked(++made == 4 ? 10 : 20); }));
  CHECK(report.settled);
  CHECK(!report.space_used_up);
  CHECK(report.trials >= 9);
  CHECK(report.trials <= 12);  // batches of three
}

TEST_CASE("a guided search drops refused points before any trial and counts why") {
  Scratch scratch;
  scratch.options.trials = 4;
  const Task task = tunable([](Schedule& s, Knobs& knob) {
    const int64_t f = knob.pick("f", {1, 2, 3, 5, 7}, 1);
    s.split(f < 5 ? "i" : "nowhere", f);
  });
  const TuneReport report =
      tune_fake(task, scratch.options, runner_of([](const Candidate&) { return worked(10); }));
  CHECK(report.statuses.count("refused") == 0);
  CHECK(report.trials == 2);
  CHECK(report.space_used_up);
  REQUIRE(report.dropped.size() == 1);
  CHECK(report.dropped.begin()->first == "refused: split");
  CHECK(report.dropped.begin()->second == 2);
}

TEST_CASE("points with equal traces are one trial") {
  Scratch scratch;
  scratch.options.trials = 100;
  const Task task = tunable([](Schedule& s, Knobs& knob) {
    const int64_t f = knob.pick("f", {1, 2, 3}, 1);
    knob.pick("without_effect", {1, 2, 3, 4, 5, 6, 7, 8}, 1);
    s.split("i", f);
  });
  const TuneReport report =
      tune_fake(task, scratch.options, runner_of([](const Candidate&) { return worked(10); }));
  CHECK(report.trials == 2);
  CHECK(report.space_used_up);
}

TEST_CASE("when nothing works the error says what happened first and how often") {
  Scratch scratch;
  scratch.options.trials = 1000;
  int measured = 0;
  auto run = [&] {
    tune_fake(tunable(), scratch.options,
              runner_of(
                  [](const Candidate& c) {
                    return c.point.number("f") == 1
                               ? failed(TrialStatus::run_error, "the kernel crashed (SIGILL)")
                               : failed(TrialStatus::run_timeout, "did not finish in 10 s");
                  },
                  &measured));
  };
  try {
    run();
    FAIL("no error");
  } catch (const TuneError& e) {
    CHECK_THAT(e.what(), Contains("first failure: trial 0: run_error: the kernel crashed"));
    CHECK_THAT(e.what(), Contains("times run_timeout: did not finish in # s"));
    CHECK_THAT(e.what(), Contains("try:"));
  }
  CHECK(measured < 25);
}

TEST_CASE("a stop keeps every finished trial, and the next session goes on") {
  Scratch scratch;
  std::atomic<bool> stop{false};
  scratch.options.trials = 20;
  scratch.options.stop = &stop;
  int measured = 0;
  const TuneReport report = tune_fake(tunable(), scratch.options,
                                      runner_of(
                                          [&](const Candidate& c) {
                                            if (measured == 8) stop = true;
                                            return worked(us_of(c));
                                          },
                                          &measured));
  CHECK(report.interrupted);
  const size_t kept = load_log(scratch.options.log).records.size();
  CHECK(kept >= 7);
  stop = false;
  const TuneReport next = tune_fake(tunable(), scratch.options, honest());
  CHECK(next.resumed == static_cast<int64_t>(kept));
  CHECK_FALSE(next.interrupted);
}

TEST_CASE("a log that cannot be written is refused before anything is measured") {
  Scratch scratch;
  scratch.options.log = scratch.folder;
  CHECK_THROWS_WITH(TuneSession(tunable(), scratch.options, honest()),
                    Contains("cannot write the log"));
}

TEST_CASE("records of another target, thread count or version do not count") {
  Scratch scratch;
  scratch.options.trials = 3;
  Record other = tune_fake(tunable(), scratch.options, honest()).best.record;
  std::filesystem::remove(scratch.options.log);
  other.samples_us = {0.001};
  RecordLog log(scratch.options.log);
  Record changed = other;
  changed.threads = 2;
  log.append(changed);
  changed = other;
  changed.llvm = "1.0";
  log.append(changed);
  changed = other;
  changed.target = Target::parse("x86-64/sse2");
  log.append(changed);
  const TuneReport report = tune_fake(tunable(), scratch.options, honest());
  CHECK(report.resumed == 0);
  CHECK(median_us(report.best.record) > 1);
}

TEST_CASE("each record is handed on with its place as it is logged") {
  Scratch scratch;
  scratch.options.trials = 2;
  std::vector<LoggedRecord> seen;
  scratch.options.on_trial = [&](const LoggedRecord& r) { seen.push_back(r); };
  tune_fake(tunable(), scratch.options, honest());
  REQUIRE(seen.size() >= 3);
  for (const LoggedRecord& r : seen) CHECK(read_record(r.where) == r.record);
}

TEST_CASE("tasks of another machine are not tuned here") {
  Scratch scratch;
  Task task = tunable();
  task.target.features.push_back("zz-not-here");
  CHECK_THROWS_WITH(TuneSession(task, scratch.options, honest()), Contains("cannot run code for"));
}
