#include <tenon/records/summary.h>

#include <catch2/catch.hpp>

#include "sample.h"

using namespace tenon;

namespace {

/// "task trial us" of each task's best, and all that the summary says of it.
std::string text(const std::vector<Record>& records) {
  std::vector<LoggedRecord> logged;
  for (const Record& r : records)
    logged.push_back({r, {"log", static_cast<int64_t>(logged.size()) + 1}});
  std::string out;
  for (const TaskSummary& task : summarize_log(logged)) {
    out += fmt::format("{} {} x{}: {} trials, {} again, default {:.0f}, 95% at {}, {:.2f}/s",
                       task.first.record.task, task.first.record.target.name,
                       task.first.record.threads, task.trials, task.measured_again, task.default_us,
                       task.trials_to_95, task.trials_per_s);
    if (task.best) out += "; best " + to_json_line(task.best->record);
    for (const auto& [reason, count] : task.reasons) out += fmt::format("; {} {}", count, reason);
    out += "\n";
  }
  return out;
}

Record failure(TrialStatus status, const std::string& reason, int64_t trial) {
  Record r = sample_record(1, trial);
  r.status = status;
  r.reason = reason;
  r.samples_us.clear();
  r.check = CheckResult::not_run;
  return r;
}

Record other_task(double us, int64_t trial) {
  Record r = sample_record(us, trial);
  r.task = "conv2d";
  r.program = "aaaa";
  return r;
}

}  // namespace

TEST_CASE("a log is summarised task by task") {
  Record again = sample_record(101, 0);
  again.reason = "timed again beside the default schedule";
  Record threads = sample_record(70, 0);
  threads.threads = 2;
  const std::vector<Record> records = {
      sample_record(100, 0),
      failure(TrialStatus::run_error, "crashed at 0x12", 1),
      threads,
      sample_record(60, 2),
      failure(TrialStatus::run_error, "crashed at 0x99\nand more", 3),
      failure(TrialStatus::outpaced, "too slow", 4),
      sample_record(51, 5),
      sample_record(50, 6),
      again};
  const std::string best = to_json_line(sample_record(50, 6));
  CHECK(text(records) ==
        "matmul x86-64/avx2 x1: 7 trials, 1 again, default 101, 95% at 6, 0.00/s; best " + best +
            "; 2 run_error: crashed at #x#\n" +
            "matmul x86-64/avx2 x2: 1 trials, 0 again, default 70, 95% at 1, 0.00/s; best " +
            to_json_line(threads) + "\n");
}

TEST_CASE("cold and warm records of a task are summarised apart") {
  std::vector<Record> records = {sample_record(100, 0), sample_record(50, 1), sample_record(300, 0),
                                 sample_record(200, 1), sample_record(150, 2)};
  for (size_t k = 2; k < records.size(); ++k) records[k].cold = true;
  CHECK(text(records) ==
        "matmul x86-64/avx2 x1: 2 trials, 0 again, default 100, 95% at 2, 0.00/s; best " +
            to_json_line(records[1]) + "\n" +
            "matmul x86-64/avx2 x1: 3 trials, 0 again, default 300, 95% at 3, 0.00/s; best " +
            to_json_line(records[4]) + "\n");
}

TEST_CASE("the best of a task is the one of the last turn, beside the default of that turn") {
  const auto turn = [](double us, int trial, int64_t comparison) {
    Record r = sample_record(us, trial);
    r.comparison = comparison;
    return r;
  };
  // Trial 2 was the fastest by itself, trial 1 is in turns; a later default is of another minute.
  const std::vector<Record> records = {
      sample_record(100, 0), sample_record(52, 1), sample_record(50, 2), turn(60, 1, 1),
      turn(63, 2, 1),        turn(120, 0, 1),      sample_record(90, 0)};
  CHECK(text(records) ==
        "matmul x86-64/avx2 x1: 3 trials, 4 again, default 120, 95% at 2, 0.00/s; best " +
            to_json_line(records[3]) + "\n");
}

TEST_CASE("a task of which nothing worked has no best") {
  const std::vector<Record> records = {failure(TrialStatus::refused, "no", 0),
                                       failure(TrialStatus::refused, "no", 1)};
  CHECK(text(records) ==
        "matmul x86-64/avx2 x1: 2 trials, 0 again, default 0, 95% at 0, 0.00/s; 2 refused: no\n");
}

TEST_CASE("the best is the same however logs are put together, byte for byte") {
  // Ties within noise, in which the earlier of a task wins, and tasks mixed in all ways.
  const std::vector<Record> a = {sample_record(100, 0), sample_record(99.8, 1),
                                 sample_record(99.7, 2), sample_record(99.9, 3)},
                            b = {other_task(50, 0), other_task(40, 1), other_task(39.9, 2)};
  std::vector<Record> in_turns = a;
  for (size_t k = 0; k < b.size(); ++k)
    in_turns.insert(in_turns.begin() + static_cast<std::ptrdiff_t>(2 * k + 1), b[k]);
  std::vector<Record> a_first = a, b_first = b;
  a_first.insert(a_first.end(), b.begin(), b.end());
  b_first.insert(b_first.end(), a.begin(), a.end());
  CHECK(text(a_first) == text(b_first));
  CHECK(text(a_first) == text(in_turns));
  CHECK(text(a_first) == text(a_first));
  CHECK(text(a_first).find(to_json_line(a[0])) != std::string::npos);
  CHECK(text(a_first).find(to_json_line(b[1])) != std::string::npos);
}

TEST_CASE("trials a second come from neighbouring lines, without pauses and clocks set back") {
  std::vector<Record> records;
  const char* times[] = {"12:00:00", "12:00:00", "12:00:01", "12:00:01", "12:00:02", "12:00:02",
                         "18:30:00",  // the next day, so to say
                         "18:30:01", "18:30:02",
                         "03:00:00",  // set back
                         "03:00:01", "03:00:01"};
  for (const char* time : times) {
    records.push_back(sample_record(100, static_cast<int64_t>(records.size())));
    records.back().time = std::string("2026-01-31T") + time + "Z";
  }
  CHECK(text(records).find("1.80/s") != std::string::npos);  // 9 gaps in 5 s
  for (Record& r : records) r.time = "soon";
  CHECK(text(records).find("0.00/s") != std::string::npos);
}
