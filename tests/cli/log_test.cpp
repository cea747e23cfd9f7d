#include <catch2/catch.hpp>
#include <regex>

#include "command.h"
#include "graph_testing.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

/// Two logs of some trials each: a product and a softmax.
struct Logs {
  TemporaryFolder folder;
  std::string a, b;

  Logs() {
    expect(0, folder.path(),
           "tune matmul m=24 n=32 k=40 --threads 1 --trials 4 --quiet --log a.jsonl");
    expect(0, folder.path(),
           "tune softmax rows=24 columns=32 --threads 1 --trials 3 --quiet --log b.jsonl");
    a = read_text(path("a.jsonl"));
    b = read_text(path("b.jsonl"));
  }
  fs::path path(const std::string& name) const { return folder.path() / name; }
  Finished run(int code, const std::string& words) const {
    return expect(code, folder.path(), "log " + words);
  }
};

/// Without line numbers and the log's name, which a merge changes.
std::string without_places(const std::string& text) {
  return std::regex_replace(text, std::regex("[a-z]+\\.jsonl:[0-9]+"), "LOG:LINE");
}

/// The lines that `log best --json` names, as they stand in the file.
std::string best_lines(const Logs& logs, const std::string& log) {
  std::string out;
  for (const auto& row : json_lines(logs.run(0, "best " + log + " --json").out)) {
    const std::string where = row["best"];
    const int wanted = std::stoi(where.substr(where.find(':') + 1));
    std::istringstream in(read_text(logs.path(log)));
    std::string line;
    for (int k = 0; k < wanted; ++k) std::getline(in, line);
    out += line + "\n";
  }
  return out;
}

TEST_CASE("log merge, best, stats and check on tuned logs") {
  const Logs logs;
  const Finished merged = logs.run(0, "merge a.jsonl b.jsonl a.jsonl -o ab.jsonl");
  CHECK(merged.out == fmt::format("ab.jsonl: {} lines of 3 logs, {} duplicates left out, 0 kept "
                                  "that are no records\n",
                                  count_lines(logs.a + logs.b), count_lines(logs.a)));
  CHECK(read_text(logs.path("ab.jsonl")) == logs.a + logs.b);
  CHECK(logs.run(0, "merge b.jsonl a.jsonl -o ba.jsonl --quiet").out == "");
  CHECK(read_text(logs.path("ba.jsonl")) == logs.b + logs.a);
  const auto report = json_lines(logs.run(0, "merge ab.jsonl -o ab.jsonl --json").out);
  CHECK(report.at(0)["lines"] == count_lines(logs.a + logs.b));
  CHECK(read_text(logs.path("ab.jsonl")) == logs.a + logs.b);

  // Byte for byte the same best, merged in any order, and in any run.
  const Finished best = logs.run(0, "best ab.jsonl");
  CHECK(best.out == logs.run(0, "best ab.jsonl").out);
  CHECK(without_places(best.out) == without_places(logs.run(0, "best ba.jsonl").out));
  CHECK(best_lines(logs, "ab.jsonl") == best_lines(logs, "ba.jsonl"));
  CHECK(contains(best.out, "matmul {"));
  CHECK(contains(best.out, "1 thread(s): ab.jsonl:"));
  CHECK(contains(best.out, "x its default's "));
  const auto rows = json_lines(logs.run(0, "best ab.jsonl --json").out);
  REQUIRE(rows.size() == 2);
  CHECK(keys_of(rows[0]) == std::vector<std::string>{"args", "best", "cold", "cpu", "default_us",
                                                     "knobs", "llvm", "median_us", "program",
                                                     "ratio", "target", "task", "template", "tenon",
                                                     "threads", "trials"});
  CHECK(rows[0]["cold"] == false);
  CHECK(rows[0]["task"] == "matmul");
  CHECK(rows[0]["trials"] == 5);
  CHECK(rows[0]["knobs"].is_object());
  CHECK(rows[0]["ratio"].get<double>() ==
        Approx(rows[0]["default_us"].get<double>() / rows[0]["median_us"].get<double>()));
  CHECK(json_lines(logs.run(0, "best ab.jsonl --json --target host --threads 1").out).size() == 2);
  CHECK(contains(logs.run(2, "best ab.jsonl --threads 7").err, "none of this --target and"));

  const Finished stats = logs.run(0, "stats ab.jsonl");
  CHECK(contains(stats.out, "1 thread(s): 5 trials ("));
  CHECK(contains(stats.out, "within 95% of it after "));
  const auto counts = json_lines(logs.run(0, "stats a.jsonl --json").out);
  REQUIRE(counts.size() == 1);
  CHECK(counts[0]["trials"] == 5);
  CHECK(counts[0]["trials_to_95"].get<int>() <= 5);

  const Finished fine = logs.run(0, "check a.jsonl b.jsonl");
  CHECK(contains(
      fine.out, fmt::format("a.jsonl: {0} records, {0} replayed, 0 wrong\n", count_lines(logs.a))));
  CHECK(contains(fine.out, "b.jsonl: "));
}

TEST_CASE("log best and stats keep cold and warm records apart") {
  const Logs logs;
  expect(0, logs.folder.path(),
         "tune matmul m=24 n=32 k=40 --threads 1 --trials 2 --cold --quiet --log a.jsonl");
  for (const std::string action : {"best", "stats"}) {
    const auto rows = json_lines(logs.run(0, action + " a.jsonl --json").out);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0]["cold"] == false);
    CHECK(rows[1]["cold"] == true);
    CHECK(rows[0]["trials"] == 5);
    CHECK(rows[1]["trials"] == 3);
    const std::string text = logs.run(0, action + " a.jsonl").out;
    CHECK(contains(text, "1 thread(s): "));
    CHECK(contains(text, "1 thread(s), cold caches: "));
  }
  const auto best = json_lines(logs.run(0, "best a.jsonl --json").out);
  const std::string cold = best[1]["best"];
  CHECK(std::stoi(cold.substr(cold.find(':') + 1)) > count_lines(logs.a));
}

TEST_CASE("log check names each line that is wrong, and ends with 1") {
  const Logs logs;
  const std::string line = logs.a.substr(0, logs.a.find('\n'));
  const auto changed = [&](const std::string& from, const std::string& to) {
    return std::regex_replace(line, std::regex(from), to) + "\n";
  };
  auto bad_step = nlohmann::json::parse(line);
  bad_step["trace"] = nlohmann::json::parse(R"([{"step":"parallel","stage":"C","loop":"k"}])");
  auto network = nlohmann::json::parse(line);
  network["task"] = "conv_relu";
  network["program"] = "feedfacefeedface";
  network["args"] = {{"model", "net"}, {"kernel", "k3"}};
  write_text(logs.path("bad.jsonl"),
             line + "\n" + "rubbish\n" + bad_step.dump() + "\n" +
                 changed("\"program\":\"[0-9a-f]+\"", "\"program\":\"0123456789abcdef\"") +
                 changed("\"status\":\"ok\"", "\"status\":\"run_error\"") +
                 changed("\"schema\":1", "\"schema\":9") + network.dump() + "\n" +
                 line.substr(0, 70));
  const Finished done = run_command(logs.folder.path(), "log check a.jsonl bad.jsonl");
  INFO(done.out << done.err);
  CHECK(done.code == 1);
  CHECK(contains(done.out, "bad.jsonl:2 - not a whole JSON object"));
  CHECK(contains(done.out, "bad.jsonl:3 - the trace does not replay: schedule error in matmul"));
  CHECK(contains(done.out, "bad.jsonl:4 - the formula of matmul is no longer the one"));
  CHECK(contains(done.out, "bad.jsonl:5 - status run_error without a reason"));
  CHECK(contains(done.out, "bad.jsonl:8 - cut off in the middle of a line"));
  CHECK(contains(done.out, "bad.jsonl: 5 records, "));
  CHECK(contains(done.out,
                 "wrong; 1 line(s) of a newer version left alone; 1 of kernels of a "
                 "network not replayed (--model FILE.onnx)"));
  CHECK_FALSE(contains(done.out, "bad.jsonl:1 -"));
  CHECK_FALSE(contains(done.out, "a.jsonl:1 -"));
  const Finished json = run_command(logs.folder.path(), "log check bad.jsonl --json");
  CHECK(json.code == 1);
  const auto rows = json_lines(json.out);
  CHECK(rows.at(0)["where"] == "bad.jsonl:2");
  CHECK(rows.back()["wrong"] == rows.size() - 1);
}

TEST_CASE("log says what is missing, and what to try") {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"log", "subcommand is required"},
      {"log bset x.jsonl",
       "there is no action \"bset\"\n  actions: merge, best, check, stats, train\n  "
       "try: tenon log best --help"},
      {"log best", "log is required"},
      {"log best none.jsonl", "cannot read the log none.jsonl: No such file"},
      {"log stats none.jsonl", "cannot read the log none.jsonl"},
      {"log check none.jsonl", "cannot read the log none.jsonl"},
      {"log merge none.jsonl -o c.jsonl", "cannot read the log none.jsonl"},
      {"log merge none.jsonl", "--output is required"},
      {"log best empty.jsonl", "empty.jsonl holds no record\n  try: tenon tune --log empty.jsonl"},
  };
  write_text(folder.path() / "empty.jsonl", "");
  for (const auto& [words, telling] : cases) {
    INFO("tenon " << words);
    const Finished done = expect(2, folder.path(), words);
    INFO(done.err);
    CHECK(contains(done.err, telling));
  }
  for (const std::string action : {"merge", "best", "check", "stats"}) {
    const Finished help = expect(0, folder.path(), "log " + action + " --help");
    CHECK(contains(help.out, "--json"));
    CHECK(contains(help.out, "--quiet"));
    CHECK(contains(expect(0, folder.path(), "log --help").out, action));
  }
  CHECK(contains(expect(0, folder.path(), "--help").out, "log "));
}

TEST_CASE("a log of which nothing worked has no best: exit code 1") {
  const Logs logs;
  std::string failed;
  for (auto record : json_lines(logs.a)) {
    record["status"] = "run_error";
    record["reason"] = "the kernel crashed (SIGSEGV)";
    record["samples_us"] = nlohmann::json::array();
    record["check"] = "not_run";
    failed += record.dump() + "\n";
  }
  write_text(logs.path("failed.jsonl"), failed);
  const Finished best = run_command(logs.folder.path(), "log best failed.jsonl");
  CHECK(best.code == 1);
  CHECK(contains(best.out, "none of 5 trials worked"));
  const Finished stats = logs.run(0, "stats failed.jsonl");
  CHECK(contains(stats.out, "5 x run_error: the kernel crashed (SIGSEGV)"));
}

}  // namespace
}  // namespace tenon
