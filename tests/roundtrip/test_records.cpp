#include <tenon/records/record.h>
#include <tenon/schedule/primitive.h>

#include <catch2/catch.hpp>

using namespace tenon;
using Catch::Matchers::Contains;

// What a later version adds to a line of the same schema is still there after this version read it,
// changed it and wrote it.
TEST_CASE("a record survives a newer field") {
  Record r;
  r.task = "matmul";
  r.target = Target::parse("x86-64/avx2");
  r.program = "00112233445566aa";
  std::string line = to_json_line(r);
  line.insert(line.size() - 1, R"(,"energy_uj":[1,2.5,{"deep":null}],"host":"a b")");
  const std::string target = "\"target\":{";
  line.insert(line.find(target) + target.size(), R"("tiles":{"rows":16},)");

  Result<Record> read = parse_record(line);
  REQUIRE(read.ok());
  Record changed = *read;
  changed.status = TrialStatus::ok;
  changed.samples_us = {12.5};
  const std::string written = to_json_line(changed);
  CHECK_THAT(written, Contains(R"("energy_uj":[1,2.5,{"deep":null}],"host":"a b")"));
  CHECK_THAT(written, Contains(R"("tiles":{"rows":16})"));
  CHECK_THAT(written, Contains(R"("samples_us":[12.5])"));
  CHECK(parse_record(written).value() == changed);
}

// A step that this version cannot read may mean another schedule than the one that was measured: it
// is kept as it is, and not replayed.
TEST_CASE("a newer field of a step survives in its record and is refused by replay") {
  Record r;
  r.target = Target::parse("x86-64/avx2");
  r.program = "00112233445566aa";
  r.trace = R"([{"step":"split","stage":"C","loop":"i","factor":4,"skew":2}])";
  const Record again = parse_record(to_json_line(r)).value();
  CHECK(again.trace == r.trace);
  CHECK_THROWS_WITH(trace_from_json(again.trace),
                    Contains("trace, step 1: split has no field \"skew\"; its fields are step, "
                             "stage, loop, factor, tail") &&
                        Contains("where a newer version wrote it"));
}

TEST_CASE("a record written twice is the same text") {
  Record r;
  r.program = "00112233445566aa";
  r.target = Target::parse("x86-64/avx2");
  r.reason = "line\nbreak \"quoted\" \t";
  r.knobs = R"({"z":1,"a":[2,3]})";
  const std::string once = to_json_line(r);
  CHECK(to_json_line(*parse_record(once)) == once);
  CHECK_THAT(once, Contains(R"("knobs":{"z":1,"a":[2,3]})"));
}
