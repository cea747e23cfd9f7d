#include <catch2/catch.hpp>

#include "sample.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

std::string line(double us, int64_t trial) { return to_json_line(sample_record(us, trial)) + "\n"; }

}  // namespace

TEST_CASE("a merge has each line once, in order, and is its own merge") {
  ScratchFolder scratch;
  const std::string a = scratch.file("a"), b = scratch.file("b"), c = scratch.file("c");
  put_file(a, line(100, 0) + line(50, 1));
  put_file(b, line(50, 1) + line(40, 2) + "\n\n" + line(100, 0) + line(30, 3));
  const MergeReport report = merge_logs({a, b}, c);
  CHECK(report.lines == 4);
  CHECK(report.duplicates == 2);
  CHECK(report.warnings.empty());
  const std::string merged = line(100, 0) + line(50, 1) + line(40, 2) + line(30, 3);
  CHECK(file_text(c) == merged);
  merge_logs({a, b}, c);  // again
  CHECK(file_text(c) == merged);
  merge_logs({c, a, c, b}, c);
  CHECK(file_text(c) == merged);
  merge_logs({b, a}, a);  // into one of them
  CHECK(file_text(a) == line(50, 1) + line(40, 2) + line(100, 0) + line(30, 3));
}

TEST_CASE("a merge keeps lines of newer versions, damaged ones and fields it does not know") {
  ScratchFolder scratch;
  const std::string a = scratch.file("a"), c = scratch.file("c");
  std::string newer = line(1, 0), grown = line(2, 1);
  newer.replace(newer.find("\"schema\":1"), 10, "\"schema\":9");
  grown.insert(1, "\"added\" : [ 1,2 ], ");
  put_file(a, newer + grown + "rubbish\r\n" + line(3, 2).substr(0, 70));
  const MergeReport report = merge_logs({a}, c);
  CHECK(report.lines == 4);
  CHECK(file_text(c) == file_text(a) + "\n");
  REQUIRE(report.warnings.size() == 3);
  CHECK_THAT(report.warnings[0], Contains("a:1: kept as it is: schema 9 is newer"));
  CHECK_THAT(report.warnings[2], Contains("a:4: kept as it is: cut off in the middle"));
}

TEST_CASE("merged logs keep cold and warm trials apart, and each session's turns") {
  ScratchFolder scratch;
  const std::string a = scratch.file("a"), b = scratch.file("b"), c = scratch.file("c");
  const auto turn = [](double us, int64_t trial, bool cold) {
    Record r = sample_record(us, trial);
    r.comparison = 1;
    r.cold = cold;
    return to_json_line(r) + "\n";
  };
  // The same trial cold and warm: two lines that differ in that alone are no duplicates.
  put_file(a, turn(50, 1, false) + turn(100, 0, false));
  put_file(b, turn(50, 1, true) + turn(45, 2, true) + turn(100, 0, true) + turn(60, 2, false) +
                  turn(110, 0, false));
  CHECK(merge_logs({a, b}, c).duplicates == 0);
  const std::vector<LoggedRecord> merged = load_log(c).records;
  REQUIRE(merged.size() == 7);
  RecordQuery query = sample_query();
  CHECK(best_record(merged, query)->where.line == 6);
  query.cold = true;
  CHECK(best_record(merged, query)->where.line == 4);
}

TEST_CASE("a merge loses nothing") {
  ScratchFolder scratch;
  const std::string a = scratch.file("a"), c = scratch.file("c");
  put_file(a, line(100, 0));
  put_file(c, line(50, 1) + "rubbish\n");
  CHECK_THROWS_WITH(merge_logs({a}, c),
                    Contains("c is there already and holds 2 line(s) that none of the logs") &&
                        Contains("try: name it among them"));
  CHECK(file_text(c) == line(50, 1) + "rubbish\n");
  put_file(a, std::string(5 << 20, 'x'));
  CHECK_THROWS_WITH(merge_logs({a, c}, c), Contains("a:1: longer than 4 MiB"));
  CHECK_THROWS_WITH(merge_logs({scratch.file("none")}, c), Contains("No such file"));
  CHECK_THROWS_WITH(merge_logs({c}, scratch.file("no/folder")), Contains("cannot write"));
  CHECK(file_text(c) == line(50, 1) + "rubbish\n");
  RecordLog log(c);
  merge_logs({c}, c);
  CHECK_THROWS_WITH(log.append(sample_record()), Contains("deleted"));  // not lost unheard
}
