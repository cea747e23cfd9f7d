#include <catch2/catch.hpp>

#include "command.h"
#include "graph_testing.h"

namespace tenon {
namespace {

// One tuned log for all cases of this file.
struct Tuned {
  TemporaryFolder folder;
  std::vector<nlohmann::json> records;
  std::string place;  // a record of a schedule with steps that worked

  Tuned() {
    expect(0, folder.path(),
           "tune matmul m=24 n=32 k=40 --threads 1 --trials 4 --quiet --seed 5 --log log.jsonl");
    records = json_lines(read_text(folder.path() / "log.jsonl"));
    for (size_t k = 0; k < records.size(); ++k) {
      if (records[k]["status"] == "ok" && !records[k]["trace"].empty())
        place = fmt::format("log.jsonl:{}", k + 1);
    }
    REQUIRE(place != "");
  }
};

const Tuned& tuned() {
  static const Tuned once;
  return once;
}

const std::vector<std::string> kRowKeys = {"args",   "check",     "gflops",        "kernel",
                                           "mad_us", "median_us", "peak_fraction", "schedule",
                                           "target", "threads"};

TEST_CASE("show LOG:LINE prints each form of a schedule") {
  const auto& folder = tuned().folder.path();
  const std::string show = "show " + tuned().place + " ";
  const std::string head = expect(0, folder, show).out;
  CHECK(contains(head, "matmul"));
  CHECK(contains(head, "check passed"));
  CHECK(contains(head, "== steps"));
  CHECK(contains(head, "== loops"));
  const std::vector<std::pair<std::string, std::string>> forms = {{"--steps", "(C"},
                                                                  {"--loops", "stage C"},
                                                                  {"--cpp", "s[\"C\"]."},
                                                                  {"--ir", "output C[768] f32"},
                                                                  {"--source", "target triple"},
                                                                  {"--asm", ".globl"}};
  for (const auto& [option, telling] : forms) {
    INFO(option);
    const std::string text = expect(0, folder, show + option).out;
    CHECK(contains(text, telling));
    CHECK((option == "--source") == contains(text, "target triple"));
    CHECK((option == "--asm") == contains(text, ".globl"));
  }
}

TEST_CASE("show --steps says what each step changed in the loop tree") {
  const auto& folder = tuned().folder.path();
  auto record = tuned().records[0];
  record["trace"] = nlohmann::json::parse(R"([
    {"step":"split","stage":"C","loop":"k","factor":8,"tail":"guard"},
    {"step":"reorder","stage":"C","loops":["k.o","k.i"]},
    {"step":"unroll","stage":"C","loop":"k.i"}])");
  write_text(folder / "steps.jsonl", record.dump() + "\n");
  const std::string text = expect(0, folder, "show steps.jsonl:1 --steps").out;
  CHECK(text.substr(text.find("== steps")) == R"(== steps
step 1: split(C, "k", 8)
  ...
  stage C[24,32] f32
    for i in 0..24
      for j in 0..32
-       for k in 0..40  reduce
-         init C[i, j] = 0.0
-         C[i, j] += A[i, k] * B[k, j]
+       for k.o in 0..5  reduce
+         for k.i in 0..8  reduce
+           init C[i, j] = 0.0
+           C[i, j] += A[i, k.o*8+k.i] * B[k.o*8+k.i, j]
step 2: reorder(C, {"k.o", "k.i"})
  changes nothing
step 3: unroll(C, "k.i")
  ...
  stage C[24,32] f32
    for i in 0..24
      for j in 0..32
        for k.o in 0..5  reduce
-         for k.i in 0..8  reduce
+         for k.i in 0..8  reduce  unroll
            init C[i, j] = 0.0
            ...
)");
  // Without an option: the steps one a line, and the loop tree they end in.
  const std::string both = expect(0, folder, "show steps.jsonl:1").out;
  CHECK(contains(both, "== steps\nsplit(C, \"k\", 8)\nreorder("));
  CHECK(contains(both, "== loops\nprogram matmul\n"));
}

TEST_CASE("show --json prints the record as it stands in the log") {
  const auto lines = json_lines(expect(0, tuned().folder.path(), "show log.jsonl:1 --json").out);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == tuned().records[0]);
}

TEST_CASE("show OPERATOR says where its schedule comes from") {
  const auto& folder = tuned().folder.path();
  const std::string words = "show matmul m=24 n=32 k=40 --threads 1 ";
  CHECK(contains(expect(0, folder, words).out, ": default\n"));
  CHECK(contains(expect(0, folder, words + "--log log.jsonl").out, ": log.jsonl:"));
}

TEST_CASE("bench prints the default and the tuned row of an operator") {
  const auto& folder = tuned().folder.path();
  const std::string words =
      "bench matmul m=24 n=32 k=40 --threads 1 --rounds 3 --log log.jsonl --json";
  const auto rows = json_lines(expect(0, folder, words).out);
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    CHECK(keys_of(row) == kRowKeys);
    CHECK(row["kernel"] == "matmul");
    CHECK(row["args"] == nlohmann::json{{"m", 24}, {"n", 32}, {"k", 40}, {"type", "f32"}});
    CHECK(row["threads"] == 1);
    CHECK(row["check"] == "passed");
    CHECK(row["median_us"].get<double>() > 0);
    CHECK(row["mad_us"].get<double>() >= 0);
    const double gflops = 2 * 24 * 32 * 40 / row["median_us"].get<double>() * 1e-3;
    CHECK(row["gflops"].get<double>() == Approx(gflops).epsilon(0.02));
    CHECK(row["peak_fraction"].get<double>() > 0);
    CHECK(row["peak_fraction"].get<double>() < 1.1);
  }
  CHECK(rows[0]["schedule"] == "default");
  CHECK(rows[1]["schedule"].get<std::string>().rfind("log.jsonl:", 0) == 0);
}

TEST_CASE("bench --against times the best of other logs in the same turns") {
  const auto& folder = tuned().folder.path();
  const std::string words = "bench matmul m=24 n=32 k=40 --rounds 3 --json ";
  write_text(folder / "copy.jsonl", read_text(folder / "log.jsonl"));
  const auto rows = json_lines(
      expect(0, folder, words + "--threads 1 --against log.jsonl --against copy.jsonl").out);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["schedule"] == "default");
  CHECK(rows[1]["schedule"].get<std::string>().rfind("log.jsonl:", 0) == 0);
  CHECK(rows[2]["schedule"].get<std::string>().rfind("copy.jsonl:", 0) == 0);
  CHECK(contains(expect(2, folder, words + "--threads 2 --against log.jsonl").err,
                 "--against log.jsonl: it holds no record of matmul"));
  CHECK(contains(expect(2, folder, "bench none.onnx --against log.jsonl").err,
                 "--against is for operators"));
}

TEST_CASE("replay rebuilds, checks and times a record") {
  const auto& folder = tuned().folder.path();
  const std::string replay = "replay " + tuned().place + " ";
  CHECK(contains(expect(0, folder, replay).out, "replays: "));
  const Finished both = expect(0, folder, replay + "--check --time");
  CHECK(contains(both.out, "check passed"));
  CHECK(contains(both.out, "us in the record"));
  const auto rows = json_lines(expect(0, folder, replay + "--check --time --json").out);
  REQUIRE(rows.size() == 1);
  CHECK(keys_of(rows[0]) == kRowKeys);
  CHECK(rows[0]["schedule"] == tuned().place);
  CHECK(rows[0]["check"] == "passed");
}

TEST_CASE("replay FILE runs what a failed trial left, on the record's seed and threads") {
  const auto& folder = tuned().folder.path();
  auto failed = tuned().records[0];
  failed["status"] = "wrong_answer";
  failed["samples_us"] = nlohmann::json::array();
  failed["program_text"] = "program matmul ...";
  write_text(folder / "matmul-failure-1.json", failed.dump() + "\n");
  // The schedule is right in truth, so the trial passes now.
  const Finished replayed = expect(0, folder, "replay matmul-failure-1.json --time");
  CHECK(contains(replayed.out, "matmul-failure-1.json: check passed"));
  CHECK(contains(replayed.out, "never timed in the record"));
  const auto rows = json_lines(expect(0, folder, "replay matmul-failure-1.json --json").out);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["threads"] == 1);
}

TEST_CASE("a record of another formula or with an illegal step is refused in words") {
  const auto& folder = tuned().folder.path();
  auto other = tuned().records[0];
  other["args"]["m"] = 25;
  auto illegal = tuned().records[0];
  illegal["trace"] = nlohmann::json::parse(
      R"([{"step":"split","stage":"C","loop":"no_such_loop","factor":4,"tail":"guard"}])");
  auto stranger = tuned().records[0];
  stranger["task"] = "conv.3";
  write_text(folder / "odd.jsonl",
             other.dump() + "\n" + illegal.dump() + "\n" + stranger.dump() + "\n");
  CHECK(contains(expect(2, folder, "replay odd.jsonl:1 --check").err,
                 "no longer the one that was measured"));
  CHECK(contains(expect(2, folder, "replay odd.jsonl:2 --check").err, "no_such_loop"));
  CHECK(contains(expect(2, folder, "replay odd.jsonl:3 --check").err, "--model model.onnx"));
}

}  // namespace
}  // namespace tenon
