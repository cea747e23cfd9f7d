#include <signal.h>

#include <catch2/catch.hpp>
#include <set>

#include "command.h"
#include "graph_testing.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

const std::string kSmall = "tune matmul m=24 n=32 k=40 --threads 1 ";

// Trials that measured the same schedule twice; "timed again" lines are the final comparison.
int repeated_traces(const std::vector<nlohmann::json>& records) {
  std::set<std::string> seen;
  int repeated = 0;
  for (const auto& r : records) {
    const bool compared = r["reason"] == "timed again beside the default schedule";
    if (r["status"] == "refused" || compared) continue;
    repeated += !seen.insert(r["trace"].dump()).second;
  }
  return repeated;
}

std::set<int64_t> trials_of(const std::vector<nlohmann::json>& records) {
  std::set<int64_t> out;
  for (const auto& r : records) out.insert(r["trial"].get<int64_t>());
  return out;
}

TEST_CASE("tune writes tuning_logs/NAME.jsonl and goes on from it") {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "tuning_logs" / "matmul.jsonl";
  const Finished first = expect(0, folder.path(), kSmall + "--trials 3");
  CHECK(contains(first.out, "matmul: default "));
  CHECK(contains(first.out, "tuning_logs/matmul.jsonl:"));
  CHECK(contains(first.err, "best "));
  const std::string before = read_text(log);
  // The default schedule is trial 0; 3 more.
  CHECK(trials_of(json_lines(before)) == std::set<int64_t>{0, 1, 2, 3});

  const Finished second = expect(0, folder.path(), kSmall + "--trials 4 --quiet");
  CHECK(second.err == "");
  CHECK(contains(second.out, fmt::format("({} resumed)", count_lines(before))));
  const std::string after = read_text(log);
  CHECK(after.substr(0, before.size()) == before);
  CHECK(trials_of(json_lines(after)) == std::set<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(repeated_traces(json_lines(after)) == 0);
}

TEST_CASE(
    "a record has the fields of the design, and tune --json prints the log's lines, then a "
    "summary") {
  const TemporaryFolder folder;
  const Finished done = expect(0, folder.path(), kSmall + "--trials 2 --json --log here.jsonl");
  const std::string log = read_text(folder.path() / "here.jsonl");
  CHECK(done.out.substr(0, log.size()) == log);
  const auto last = json_lines(done.out.substr(log.size()));
  REQUIRE(last.size() == 1);
  CHECK(keys_of(last[0]) == std::vector<std::string>{"summary"});
  const auto task = last[0]["summary"]["tasks"].at(0);
  CHECK(task["task"] == "matmul");
  CHECK(contains(task["best"], "here.jsonl:"));
  CHECK(task["trials"] == 2);
  CHECK_FALSE(fs::exists(folder.path() / "tuning_logs"));
  for (const auto& line : json_lines(log)) {
    CHECK(keys_of(line) ==
          std::vector<std::string>{"args",       "check",      "check_error", "cold",  "comparison",
                                   "compile_us", "family",     "knobs",       "llvm",  "program",
                                   "reason",     "samples_us", "schema",      "seed",  "status",
                                   "target",     "task",       "template",    "tenon", "threads",
                                   "time",       "trace",      "trial"});
    CHECK(line["schema"] == 1);
    CHECK(line["task"] == "matmul");
    CHECK(line["threads"] == 1);
    CHECK(line["args"] == nlohmann::json{{"m", 24}, {"n", 32}, {"k", 40}, {"type", "f32"}});
    CHECK(line["trace"].is_array());
  }
}

TEST_CASE(
    "option --trials 0 measures the default schedule only, and --seed is kept in the record") {
  const TemporaryFolder folder;
  expect(0, folder.path(), kSmall + "--trials 0 --seed 99 --quiet");
  const auto records = json_lines(read_text(folder.path() / "tuning_logs" / "matmul.jsonl"));
  REQUIRE(records.size() == 1);
  CHECK(records[0]["trial"] == 0);
  CHECK(records[0]["seed"] == 99);
}

TEST_CASE("a log that cannot be written ends with 2 before any tuning") {
  const TemporaryFolder folder;
  write_text(folder.path() / "file", "");
  const Finished inside = expect(2, folder.path(), kSmall + "--log file/log.jsonl");
  CHECK(contains(inside.err, "cannot write the log file/log.jsonl"));
  CHECK(contains(inside.err, "--log FILE"));
  CHECK_FALSE(contains(inside.err, "best"));
  const Finished is_folder = expect(2, folder.path(), kSmall + "--log .");
  CHECK(contains(is_folder.err, "cannot write the log"));
}

TEST_CASE("damaged lines and those of a newer schema are warned about and stay as they are") {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "log.jsonl";
  expect(0, folder.path(), kSmall + "--trials 1 --quiet --log log.jsonl");
  const std::string good = read_text(log);
  const int lines = count_lines(good);
  auto newer = nlohmann::json::parse(good.substr(0, good.find('\n')));
  newer["schema"] = 99;
  const std::string damaged =
      good + "not a record\n" + newer.dump() + "\n" + good.substr(0, good.find('\n') / 2);
  REQUIRE(damaged.back() != '\n');
  write_text(log, damaged);

  const Finished tuned = expect(0, folder.path(), kSmall + "--trials 1 --quiet --log log.jsonl");
  CHECK(contains(tuned.err, fmt::format("log.jsonl:{}: skipped", lines + 1)));
  CHECK(contains(tuned.err, fmt::format("log.jsonl:{}: skipped", lines + 2)));
  CHECK(contains(tuned.err, "schema"));
  CHECK(contains(tuned.out, fmt::format("({} resumed)", lines)));
  const std::string after = read_text(log);
  REQUIRE(after.size() > damaged.size());
  CHECK(after.substr(0, damaged.size() + 1) == damaged + "\n");

  const std::string words = "matmul m=24 n=32 k=40 --threads 1 --rounds 1 --log log.jsonl";
  const Finished benched = expect(0, folder.path(), "bench " + words);
  CHECK(contains(benched.err, fmt::format("log.jsonl:{}: skipped", lines + 1)));
  CHECK(contains(benched.out, "log.jsonl:"));
  CHECK(read_text(log) == after);
  const Finished shown = expect(2, folder.path(), fmt::format("show log.jsonl:{}", lines + 1));
  CHECK(contains(shown.err, "no usable record"));
  expect(2, folder.path(), fmt::format("replay log.jsonl:{}", lines + 2));
  CHECK(contains(expect(2, folder.path(), "show log.jsonl:999").err, "no such line"));
}

TEST_CASE("records of another instruction set are not used, and the user hears of them") {
  const TemporaryFolder folder;
  // No operator of the shipped logs' families, which would answer in their stead.
  const std::string subject = " log_softmax rows=6 columns=40 --threads 1 --log log.jsonl";
  expect(0, folder.path(), "tune" + subject + " --trials 1 --quiet");
  std::string foreign;
  for (nlohmann::json record : json_lines(read_text(folder.path() / "log.jsonl"))) {
    record["target"]["features"].push_back("zz-of-tomorrow");
    record["target"]["name"] = "x86-64/next";
    foreign += record.dump() + "\n";
  }
  write_text(folder.path() / "log.jsonl", foreign);
  for (const std::string verb : {"bench", "run", "show"}) {
    const Finished done = expect(0, folder.path(), verb + subject);
    INFO(verb << ": " << done.err);
    CHECK(contains(done.err, "tenon: warning: no record fits 1 of 1 kernel(s) on "));
    CHECK(contains(done.err, "its code needs zz-of-tomorrow\n"));
    CHECK(contains(done.err, "try: tenon tune"));
    CHECK_FALSE(contains(done.out, "log.jsonl:"));
  }
}

TEST_CASE("trials of another CPU stay in the log, do not count, and are told of") {
  const TemporaryFolder folder;
  expect(0, folder.path(), kSmall + "--trials 1 --quiet --log log.jsonl");
  std::string foreign;
  for (nlohmann::json record : json_lines(read_text(folder.path() / "log.jsonl"))) {
    record["target"]["cpu"] = "A CPU of another maker";
    record["samples_us"] = {0.001};
    foreign += record.dump() + "\n";
  }
  write_text(folder.path() / "log.jsonl", foreign);
  const Finished tuned = expect(0, folder.path(), kSmall + "--trials 1 --quiet --log log.jsonl");
  CHECK(contains(tuned.err,
                 "of matmul were made on another CPU (A CPU of another maker): they "
                 "stay and do not count here"));
  CHECK(contains(tuned.out, "(0 resumed)"));
  CHECK(read_text(folder.path() / "log.jsonl").substr(0, foreign.size()) == foreign);
  // For a size that only the other CPU has tuned, its schedule is at most adapted.
  write_text(folder.path() / "log.jsonl", foreign);
  const Finished benched =
      expect(0, folder.path(),
             "bench matmul m=24 n=32 k=40 --threads 1 --rounds 1 --log log.jsonl --json");
  for (const auto& row : json_lines(benched.out)) {
    const std::string schedule = row["schedule"];
    CHECK((schedule == "default" || contains(schedule, "adapted from log.jsonl:")));
    if (schedule != "default") CHECK(contains(schedule, " (another CPU)"));
  }
}

TEST_CASE("a full disk ends tuning with 2, names the log, and damages nothing that was stored") {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "log.jsonl";
  expect(0, folder.path(), kSmall + "--trials 2 --quiet --log log.jsonl");
  // A line of a newer version makes the log larger than all else that tuning may write.
  const std::string before =
      read_text(log) + R"({"schema":99,"is":")" + std::string(400000, 'x') + "\"}\n";
  write_text(log, before);
  const Finished full = Command(folder.path(), kSmall + "--trials 30 --quiet --log log.jsonl",
                                static_cast<int64_t>(before.size()) + 5000)
                            .wait();
  INFO(full.err);
  CHECK(full.code == 2);
  CHECK(full.out == "");
  CHECK(contains(full.err, "tenon: cannot write the log log.jsonl: File too large"));
  CHECK(contains(full.err, "try: make room"));
  const std::string after = read_text(log);
  CHECK(after.substr(0, before.size()) == before);
  CHECK(after.back() == '\n');
  json_lines(after);
  const Finished next = expect(0, folder.path(), kSmall + "--trials 1 --quiet --log log.jsonl");
  CHECK(contains(next.out, fmt::format("({} resumed)", count_lines(after) - 1)));
  const Finished device = expect(2, folder.path(), kSmall + "--trials 1 --quiet --log /dev/full");
  CHECK(contains(device.err, "cannot write the log /dev/full: No space left on device"));
}

TEST_CASE("where every trial fails, tune stops early, says the first failure and what to try") {
  const TemporaryFolder folder;
  fs::create_symlink(TENON_COMMAND, folder.path() / "tenon");
  fs::copy_file(LAME_RUNNER, folder.path() / "tenon-runner");
  const auto tune = [&](const std::string& words) {
    fs::remove(folder.path() / "started");
    return Command(folder.path(), kSmall + "--trials 500 --log log.jsonl " + words, -1,
                   (folder.path() / "tenon").string())
        .wait();
  };
  const Finished done = tune("--quiet");
  INFO(done.err);
  CHECK(done.code == 1);
  CHECK(done.out == "");
  CHECK(contains(done.err,
                 "matmul: none of 17 trials worked\n"
                 "  first failure: trial 0: run_error: the kernel "));
  CHECK(contains(done.err, "SIGILL"));
  CHECK(contains(done.err, "  17 times run_error: the kernel "));
  CHECK(contains(done.err, "\n  try: tenon show log.jsonl:1 --loops"));
  const auto records = json_lines(read_text(folder.path() / "log.jsonl"));
  CHECK(records.size() == 17);
  for (const auto& r : records) {
    CHECK(r["status"] == "run_error");
    CHECK(r["samples_us"].empty());
  }
  // The next session tells as much, of what it tried itself; machines read it.
  const Finished json = tune("--quiet --json");
  INFO(json.out << json.err);
  CHECK(json.code == 1);
  const auto last = json_lines(json.out).back();
  CHECK(contains(last["summary"]["tasks"].at(0)["failure"], "first failure: trial 17: run_error"));
  CHECK(contains(json.err, "none of "));
}

TEST_CASE("two tuners work on one log at once, and measure nothing twice") {
  const TemporaryFolder folder;
  const std::string words = "tune matmul m=48 n=64 k=64 --threads 1 --quiet --log log.jsonl ";
  Command one(folder.path(), words + "--trials 12"), other(folder.path(), words + "--trials 12");
  for (Command* tuner : {&one, &other}) {
    const Finished done = tuner->wait();
    INFO(done.err);
    CHECK(done.code == 0);
  }
  const std::string text = read_text(folder.path() / "log.jsonl");
  CHECK(text.back() == '\n');
  const auto records = json_lines(text);
  CHECK(records.size() >= 25);
  CHECK(repeated_traces(records) <= 1);  // each may measure the default schedule, the one to beat
  const Finished next = expect(0, folder.path(), words + "--trials 2");
  CHECK(contains(next.out, fmt::format("({} resumed)", count_lines(text))));
  CHECK(repeated_traces(json_lines(read_text(folder.path() / "log.jsonl"))) <= 1);
}

TEST_CASE("Ctrl-C keeps every finished trial, exits with 130, and the next run goes on") {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "log.jsonl";
  const std::string words = "tune matmul m=64 n=64 k=64 --threads 1 --quiet --log log.jsonl ";
  Command tuning(folder.path(), words + "--time 200");
  REQUIRE(tuning.wait_until([&] { return count_lines(read_text(log)) >= 4; }, 150));
  tuning.signal(SIGINT);
  const Finished done = tuning.wait(60);
  INFO(done.err);
  CHECK(done.code == 130);
  CHECK(contains(done.err, "stopped by Ctrl-C; every finished trial is in the log"));
  const std::string before = read_text(log);
  CHECK(before.back() == '\n');
  CHECK(json_lines(before).size() >= 4);

  const Finished next = expect(0, folder.path(), words + "--trials 2");
  CHECK(contains(next.out, fmt::format("({} resumed)", count_lines(before))));
  const auto records = json_lines(read_text(log));
  CHECK(repeated_traces(records) == 0);
  CHECK(static_cast<int64_t>(trials_of(records).size()) == *trials_of(records).rbegin() + 1);
}

TEST_CASE("Ctrl-C before the first trial exits with 130 too") {
  const TemporaryFolder folder;
  // The unscheduled kernel alone takes seconds.
  Command tuning(folder.path(), "tune matmul m=1200 n=1200 k=1200 --threads 1 --log log.jsonl");
  REQUIRE(tuning.wait_until([&] { return fs::exists(folder.path() / "log.jsonl"); }, 100));
  tuning.signal(SIGINT);
  const Finished done = tuning.wait(60);
  INFO(done.err);
  CHECK(done.code == 130);
  CHECK(done.out == "");
  CHECK(contains(done.err, "stopped by Ctrl-C"));
}

TEST_CASE("a killed run leaves a log that the next one uses") {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "log.jsonl";
  const std::string words = "tune matmul m=48 n=64 k=64 --threads 1 --quiet --log log.jsonl ";
  Command tuning(folder.path(), words + "--time 200");
  REQUIRE(tuning.wait_until([&] { return count_lines(read_text(log)) >= 3; }, 150));
  tuning.signal(SIGKILL);
  CHECK(tuning.wait(60).code == 128 + SIGKILL);
  const std::string before = read_text(log);
  const Finished next = expect(0, folder.path(), words + "--trials 1");
  CHECK(read_text(log).substr(0, before.size()) == before);
  CHECK(contains(next.out, fmt::format("({} resumed)", count_lines(before))));
}

}  // namespace
}  // namespace tenon
