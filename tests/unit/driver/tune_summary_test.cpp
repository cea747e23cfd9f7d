#include <tenon/driver/tune_summary.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace tenon;

namespace {

TuneReport sample_report() {
  TuneReport report;
  report.best.record.samples_us = {50};
  report.best.record.template_name = "tile";
  report.best.where = {"log.jsonl", 7};
  report.baseline.record.samples_us = {100};
  report.trials = 9;
  report.resumed = 3;
  report.seconds = 2;
  report.statuses = {{"ok", 4}, {"refused", 3}, {"run_error", 2}};
  report.reasons = {{"refused: the register tile is too large", 3},
                    {"a rare one", 1},
                    {"run_error: the kernel crashed (SIGSEGV)", 2}};
  return report;
}

TuneReport failed_report() {
  TuneReport report = sample_report();
  report.best = {};
  report.baseline = {};
  report.failure =
      "conv: none of 17 trials worked\n  first failure: trial 0: refused: no\n  try: this";
  report.interrupted = true;
  return report;
}

}  // namespace

TEST_CASE("the summary says how trials ended and why some were refused or failed") {
  CHECK(summary_text("matmul", sample_report()) ==
        "matmul: default 100.0 us, best 50.0 us (2.00x) tile log.jsonl:7\n"
        "  9 trials in 2.0 s (3 resumed): 4 ok 3 refused 2 run_error\n"
        "        3 x refused: the register tile is too large\n"
        "        2 x run_error: the kernel crashed (SIGSEGV)\n"
        "        1 x a rare one\n");
}

TEST_CASE("where nothing worked the summary has the first failure and advice") {
  const std::string text = summary_text("conv", failed_report());
  CHECK(text.rfind("conv: none of 17 trials worked\n  first failure: trial 0: refused: no\n  "
                   "try: this\n  9 trials in ",
                   0) == 0);
}

TEST_CASE("the summary of --json is one object with all tasks") {
  const std::string line = summary_json({{"a", sample_report()}, {"b", failed_report()}});
  CHECK(line.find('\n') == std::string::npos);
  const auto summary = nlohmann::json::parse(line).at("summary");
  CHECK(summary["trials"] == 18);
  CHECK(summary["interrupted"] == true);
  const auto a = summary["tasks"].at(0), b = summary["tasks"].at(1);
  CHECK(a["best"] == "log.jsonl:7");
  CHECK(a["best_us"] == 50);
  CHECK(a["ratio"] == 2);
  CHECK(a["reasons"]["refused: the register tile is too large"] == 3);
  CHECK(b["best"].is_null());
  CHECK(b["failure"].get<std::string>().find("first failure") != std::string::npos);
  CHECK(b["statuses"]["run_error"] == 2);
}
