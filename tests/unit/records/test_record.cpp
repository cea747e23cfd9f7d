#include <catch2/catch.hpp>
#include <cmath>

#include "sample.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a record is the line of the design, field by field") {
  Record r = sample_record();
  r.target = Target{};
  const std::string line = to_json_line(r);
  const std::string target = r.target.to_json();
  REQUIRE_THAT(line, Contains(target));
  CHECK(replaced(line, target, "{}") ==
        R"({"schema":1,"task":"matmul","args":{"m":64,"n":64,"k":64,"type":"f32"},)"
        R"("program":"00112233445566aa","family":"ffeeddccbbaa0099","target":{},"threads":1,)"
        R"("template":"tiled","knobs":{"tile_i":8,"order":"ikj"},)"
        R"("trace":[{"split":{"loop":"i","factor":1}}],"status":"ok","reason":"",)"
        R"("cold":false,"samples_us":[100.0,100.1,99.9],"check":"passed","check_error":0.25,)"
        R"("compile_us":9000.0,"seed":7,"trial":0,"comparison":0,"tenon":"0.1.0","llvm":"19.1.7",)"
        R"("time":"2026-01-31T12:00:00Z"})");
}

TEST_CASE("a record reads back equal") {
  Record r = sample_record();
  r.seed = UINT64_MAX;
  r.status = TrialStatus::wrong_answer;
  r.reason = "element \"C[0,1]\" is 3\nnot 4";
  r.check = CheckResult::failed;
  CHECK(parse_record(to_json_line(r)).value() == r);
  for (int s = 0; s < 9; ++s) {
    r.status = static_cast<TrialStatus>(s);
    CHECK(parse_record(to_json_line(r)).value().status == r.status);
  }
}

TEST_CASE("an error that is no number is null") {
  Record r = sample_record();
  r.status = TrialStatus::wrong_answer;
  r.check = CheckResult::failed;
  r.check_error = std::nan("");
  CHECK_THAT(to_json_line(r), Contains("\"check_error\":null"));
  CHECK(std::isnan(parse_record(to_json_line(r)).value().check_error));
}

TEST_CASE("text that is not UTF-8 is written all the same") {
  Record r = sample_record();
  r.reason = "\xff\xfe";
  CHECK(parse_record(to_json_line(r)).ok());
}

TEST_CASE("a bad line says what is wrong with it") {
  const std::string good = to_json_line(sample_record());
  auto error = [](const std::string& line) {
    Result<Record> r = parse_record(line);
    return r ? std::string("none") : r.error();
  };
  CHECK_THAT(error(good.substr(0, good.size() / 2)), Contains("not a whole JSON object"));
  CHECK_THAT(error("[1,2]"), Contains("no JSON object"));
  CHECK_THAT(error("\"x\""), Contains("no JSON object"));
  CHECK_THAT(error(replaced(good, "\"schema\":1", "\"schema\":2")),
             Contains("schema 2 is newer than 1"));
  CHECK_THAT(error(replaced(good, "\"schema\":1", "\"schema\":0")), Contains("\"schema\""));
  CHECK_THAT(error(replaced(good, "\"program\":", "\"other\":")),
             Contains("\"program\" is missing"));
  CHECK_THAT(error(replaced(good, "\"status\":\"ok\"", "\"status\":\"fine\"")),
             Contains("\"status\" is \"fine\""));
  CHECK_THAT(error(replaced(good, "\"threads\":1", "\"threads\":-1")), Contains("\"threads\""));
  CHECK_THAT(error(replaced(good, "\"threads\":1", "\"threads\":1e300")), Contains("\"threads\""));
  CHECK_THAT(error(replaced(good, "100.0,", "-100.0,")), Contains("impossible time"));
  CHECK_THAT(error(replaced(good, "[100.0,100.1,99.9]", "[]")), Contains("samples_us is empty"));
  CHECK_THAT(error(replaced(good, "\"trial\":0", "\"trial\":18446744073709551615")),
             Contains("\"trial\""));
  CHECK_THAT(error(std::string(1000000, '[')), Contains("nested deeper"));
  CHECK_THAT(error(replaced(good, "\"cores\":", "\"cores\":\"x\",\"c\":")), Contains("\"target\""));
}

TEST_CASE("only verified results can be the best") {
  Record r = sample_record();
  CHECK(can_be_best(r));
  r.check = CheckResult::not_run;
  CHECK_FALSE(can_be_best(r));
  r = sample_record();
  r.status = TrialStatus::outpaced;
  CHECK_FALSE(can_be_best(r));
}

TEST_CASE("noise is the median deviation, at least half a percent") {
  Record r = sample_record();
  r.samples_us = {100, 110, 90, 100, 500};
  CHECK(median_us(r) == 100);
  CHECK(noise_us(r) == 10);
  r.samples_us = {100, 100};
  CHECK(noise_us(r) == 0.5);
}
