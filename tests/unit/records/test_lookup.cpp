#include <catch2/catch.hpp>
#include <cstdlib>
#include <iterator>

#include "sample.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

std::vector<LoggedRecord> numbered(std::vector<Record> records) {
  std::vector<LoggedRecord> out;
  for (Record& r : records)
    out.push_back({std::move(r), {"log", static_cast<int64_t>(out.size()) + 1}});
  return out;
}

int64_t best_line(std::vector<Record> records, const RecordQuery& query = sample_query()) {
  auto best = best_record(numbered(std::move(records)), query);
  return best ? best->where.line : 0;
}

int64_t nearest_line(std::vector<Record> records, const RecordQuery& query = sample_query()) {
  auto near = nearest_record(numbered(std::move(records)), query);
  return near ? near->where.line : 0;
}

Record other_member(const std::string& program, int m, double us) {
  Record r = sample_record(us);
  r.program = program;
  r.args = fmt::format(R"({{"m":{},"n":64,"k":64,"type":"f32"}})", m);
  return r;
}

}  // namespace

TEST_CASE("the fastest verified record is the best") {
  CHECK(best_line({sample_record(100, 0), sample_record(50, 1), sample_record(70, 2)}) == 2);
  CHECK(best_line({}) == 0);
  Record outpaced = sample_record(1, 3);
  outpaced.status = TrialStatus::outpaced;
  Record unchecked = sample_record(1, 4);
  unchecked.check = CheckResult::not_run;
  CHECK(best_line({sample_record(100, 0), outpaced, unchecked}) == 1);
}

TEST_CASE("ties within noise go to the earlier") {
  CHECK(best_line({sample_record(100, 0), sample_record(99.8, 1)}) == 1);
  CHECK(best_line({sample_record(100, 0), sample_record(98, 1)}) == 2);
}

TEST_CASE("what was timed in turns last decides, whatever others took in other minutes") {
  auto turn = [](double us, int trial, int64_t comparison) {
    Record r = sample_record(us, trial);
    r.comparison = comparison;
    return r;
  };
  CHECK(best_line({sample_record(100, 0), sample_record(50, 1), sample_record(40, 2),
                   turn(90, 1, 1), turn(110, 0, 1)}) == 4);
  // A later turn replaces an earlier one as a whole, and its ties go to the earlier trace.
  CHECK(best_line({sample_record(100, 0), turn(50, 1, 1), turn(100, 0, 1), turn(60, 2, 2),
                   turn(60.1, 0, 2)}) == 5);
  // Of a trace that failed in its turn the others are left.
  Record wrong = turn(10, 1, 1);
  wrong.status = TrialStatus::run_error;
  CHECK(best_line({turn(100, 0, 1), wrong}) == 1);
}

TEST_CASE("turns of sessions whose logs were merged stay apart") {
  auto turn = [](double us, int trial, int64_t comparison) {
    Record r = sample_record(us, trial);
    r.comparison = comparison;
    return r;
  };
  // Both sessions called their turn 1.
  const std::vector<Record> first = {turn(50, 1, 1), turn(100, 0, 1)},
                            second = {turn(60, 2, 1), turn(120, 0, 1)};
  const auto merged = [](std::vector<Record> a, const std::vector<Record>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  CHECK(best_line(merged(first, second)) == 3);
  CHECK(best_line(merged(second, first)) == 3);
  CHECK(best_line(merged(merged(first, second), {turn(130, 2, 1), turn(125, 0, 1)})) == 6);
  // Where the default was not timed, a trace that comes again begins the next turn.
  CHECK(best_line({turn(50, 1, 1), turn(60, 2, 1), turn(70, 2, 1), turn(75, 1, 1)}) == 3);
  // A turn of a lower number that ends later in the log is the later one.
  CHECK(best_line(merged({turn(50, 1, 7), turn(100, 0, 7)}, second)) == 3);
  // Two that were written at once, line by line: a default alone decides nothing.
  CHECK(best_line({turn(50, 1, 1), turn(60, 2, 2), turn(100, 0, 1), turn(110, 0, 2)}) == 2);
  CHECK(best_line({turn(50, 1, 1), turn(60, 2, 1), turn(40, 0, 1), turn(40, 0, 1)}) == 1);
}

TEST_CASE("cold and warm records never meet") {
  Record cold = sample_record(50, 1);
  cold.cold = true;
  RecordQuery query = sample_query();
  CHECK(best_line({sample_record(100, 0), cold}) == 1);
  CHECK(nearest_line({cold}) == 0);
  query.cold = true;
  CHECK(best_line({sample_record(40, 0), cold}, query) == 2);
}

TEST_CASE("a trace counts as it was measured last") {
  CHECK(best_line({sample_record(100, 0), sample_record(50, 1), sample_record(60, 2),
                   sample_record(120, 1)}) == 3);
  CHECK(best_line({sample_record(100, 0), sample_record(50, 1), sample_record(101, 0)}) == 2);
  SECTION("also when it failed then") {
    Record wrong = sample_record(50, 1);
    wrong.status = TrialStatus::wrong_answer;
    wrong.check = CheckResult::failed;
    CHECK(best_line({sample_record(100, 0), sample_record(50, 1), wrong}) == 1);
  }
  SECTION("and keeps its place in the order: the default re-measured still wins a tie") {
    CHECK(best_line({sample_record(100, 0), sample_record(90, 1), sample_record(100, 1),
                     sample_record(100.1, 0)}) == 4);
  }
}

TEST_CASE("a record of another target, thread count or program is never the best") {
  Record wide = sample_record();
  wide.target = Target::parse("x86-64/sse2");
  Record two = sample_record();
  two.threads = 2;
  Record other = sample_record();
  other.program = "1111111111111111";
  Record version = sample_record();
  version.llvm = "18.1.0";
  CHECK(best_line({wide, two, other, version}) == 0);
  RecordQuery any = sample_query();
  any.tenon = any.llvm = "";
  CHECK(best_line({wide, two, other, version}, any) == 4);
}

TEST_CASE("the nearest member of the family is adapted") {
  const Record far = other_member("aaaa", 1024, 5);
  const Record near = other_member("bbbb", 65, 500);
  CHECK(nearest_line({far, near}) == 2);
  Record stranger = near;
  stranger.family = "0123";
  Record elsewhere = near;
  elsewhere.target = Target::parse("x86-64/sse2");
  CHECK(nearest_line({far, stranger, elsewhere}) == 1);
  RecordQuery no_family = sample_query();
  no_family.family = "";
  CHECK(nearest_line({far, near}, no_family) == 0);
}

TEST_CASE("the same program by another version is nearer than any other member") {
  Record old = sample_record(900);
  old.tenon = "0.0.9";
  CHECK(nearest_line({other_member("bbbb", 65, 5), old}) == 2);
}

namespace {

// One record for each rung of the ladder, the nearest first.
Record on_rung(Match match) {
  Record r = sample_record(match == Match::exact ? 900.0 : 100.0);  // nearness counts, not speed
  const bool other_cpu = match == Match::other_cpu || match == Match::family_other_cpu;
  if (match == Match::other_version) r.llvm = "18.1.0";
  if (other_cpu) r.target.cpu = "Another CPU of the same features";
  if (match == Match::family || match == Match::family_other_cpu) r.program = "another member";
  return r;
}

constexpr Match kRungs[] = {Match::exact, Match::other_version, Match::other_cpu, Match::family,
                            Match::family_other_cpu};

}  // namespace

TEST_CASE("the nearest rung of the ladder answers, wherever it stands") {
  for (size_t from = 0; from < std::size(kRungs); ++from) {
    std::vector<Record> records;
    for (size_t k = std::size(kRungs); k-- > from;) records.push_back(on_rung(kRungs[k]));
    INFO("rung " << from);
    CHECK(match_of(on_rung(kRungs[from]), sample_query()) == kRungs[from]);
    const auto found = RecordStore(numbered(records)).find(sample_query());
    REQUIRE(found);
    CHECK(found->match == kRungs[from]);
    CHECK(found->adapted() == (from > 0));
    CHECK(found->logged.record == on_rung(kRungs[from]));
    CHECK((best_line(records) > 0) == (from == 0));
  }
}

TEST_CASE("a record of other features, more or fewer, never answers, nor one of other threads") {
  Record wider = sample_record(1);
  wider.target.features.push_back("zz-of-tomorrow");
  Record narrower = sample_record(1);
  narrower.target.features.erase(narrower.target.features.begin());
  Record threads = sample_record(1);
  threads.threads = 2;
  Record device = sample_record(1);
  device.target = Target::generic_gpu();
  for (const Record& r : {wider, narrower, threads, device}) {
    CHECK_FALSE(match_of(r, sample_query()));
    Record member = r;
    member.program = "another member";
    CHECK_FALSE(match_of(member, sample_query()));
    CHECK_FALSE(RecordStore(numbered({r, member})).find(sample_query()));
  }
}

TEST_CASE("records of cold caches where warm ones are asked for are told of as such") {
  Record cold = sample_record(1);
  cold.cold = true;
  RecordQuery query = sample_query();
  CHECK_THAT(RecordStore(numbered({cold})).passed_over({query}),
             Contains("1 thread(s): timed with cold caches"));
  query.cold = true;
  CHECK_THAT(RecordStore(numbered({sample_record(1)})).passed_over({query}),
             Contains("1 thread(s): timed with warm caches"));
}

TEST_CASE("where only such records exist, the user hears what there is and what to try") {
  Record wider = sample_record(1);
  wider.target.features.push_back("zz-of-tomorrow");
  wider.target.name = "x86-64/next";
  wider.target.cpu = "A CPU of tomorrow";
  Record narrower = sample_record(1);
  narrower.target.features.erase(narrower.target.features.begin());
  Record threads = sample_record(1);
  threads.threads = 2;
  const auto text = [](const std::vector<Record>& records) {
    return RecordStore(numbered(records)).passed_over({sample_query()});
  };
  CHECK(text({}) == "");
  CHECK(text({on_rung(Match::family_other_cpu), wider}) == "");
  const std::string all = text({threads, wider, wider, narrower});
  CHECK_THAT(all, Contains("no record fits 1 of 1 kernel(s) on x86-64/avx2 (") &&
                      Contains("with 1 thread(s); the logs hold others, which are never used"));
  CHECK_THAT(all, Contains("log:2 and 1 more: x86-64/next (A CPU of tomorrow), 1 thread(s): its "
                           "code needs zz-of-tomorrow"));
  CHECK_THAT(all, Contains("log:1: x86-64/avx2 (") &&
                      Contains("), 2 thread(s): measured with 2 thread(s)"));
  CHECK_THAT(all, Contains("log:4: ") &&
                      Contains("its code does not use " + sample_record().target.features[0]));
  CHECK_THAT(all,
             Contains("\n  try: tenon tune, with the same words, on this machine; --threads 2"));
  SECTION("of the family: other features are told of, other threads of another size are not") {
    wider.program = threads.program = "another member";
    CHECK_THAT(text({wider}), Contains("log:1: x86-64/next"));
    CHECK(text({threads}) == "");
  }
  SECTION("what is shipped is not told of") {
    REQUIRE_FALSE(RecordPlaces::shipped_folder().empty());
    std::vector<LoggedRecord> shipped = numbered({wider});
    shipped[0].where.path = RecordPlaces::shipped_folder() + "/next.jsonl";
    CHECK(RecordStore(shipped).passed_over({sample_query()}) == "");
  }
  SECTION("a failed trial is nothing to tell of") {
    wider.check = CheckResult::not_run;
    wider.status = TrialStatus::outpaced;
    CHECK(text({wider}) == "");
  }
}

TEST_CASE("times of day order nothing: not the best, not the ties, not the last trial of a trace") {
  std::vector<Record> records = {sample_record(100, 0), sample_record(50, 1), sample_record(50, 2),
                                 sample_record(60, 1)};
  CHECK(best_line(records) == 3);
  const char* backwards[] = {"2026-01-31T12:00:04Z", "2026-01-31T12:00:03Z", "1999-01-31T12:00:02Z",
                             "1970-01-01T00:00:00Z"};
  for (size_t k = 0; k < records.size(); ++k) records[k].time = backwards[k];
  CHECK(best_line(records) == 3);
  records[0].time = "yesterday";
  CHECK(best_line(records) == 3);
}

TEST_CASE("TENON_SHIPPED_LOGS names the folder that is read in place of the installation's") {
  const std::string own = RecordPlaces::shipped_folder();
  REQUIRE_FALSE(own.empty());
  ScratchFolder scratch;
  RecordLog(scratch.file("team/a.jsonl")).append(sample_record(10, 1));
  const auto finds = [&](const std::string& folder) {
    ::setenv("TENON_SHIPPED_LOGS", folder.c_str(), 1);
    const RecordPlaces places{"", scratch.file("none")};
    ::unsetenv("TENON_SHIPPED_LOGS");
    return places.shipped == folder && RecordStore(places).find(sample_query()).has_value();
  };
  CHECK(finds(scratch.file("team")));
  CHECK_FALSE(finds(""));
  CHECK(RecordPlaces::shipped_folder() == own);
}

TEST_CASE("a store asks --log, then the local folder, then what is shipped") {
  ScratchFolder scratch;
  const RecordPlaces places{scratch.file("mine.jsonl"), scratch.file("local"),
                            scratch.file("shipped")};
  RecordLog(places.shipped + "/a.jsonl").append(sample_record(10, 1));
  auto line_of = [&](const RecordPlaces& p) {
    auto found = RecordStore(p).find(sample_query());
    REQUIRE(found);
    return found->logged.where.text() + (found->adapted() ? " adapted" : "");
  };
  CHECK(line_of({"", places.local, places.shipped}) == places.shipped + "/a.jsonl:1");
  RecordLog(places.local + "/b.jsonl").append(sample_record(20, 1));
  CHECK(line_of({"", places.local, places.shipped}) == places.local + "/b.jsonl:1");
  Record other = other_member("bbbb", 65, 1);
  RecordLog(places.log).append(other);
  SECTION("an exact match further on comes before an adapted one") {
    CHECK(line_of(places) == places.local + "/b.jsonl:1");
  }
  SECTION("the log that was asked for comes first") {
    RecordLog(places.log).append(sample_record(30, 1));
    CHECK(line_of(places) == places.log + ":2");
  }
  SECTION("nothing exact anywhere") {
    CHECK(line_of({places.log, "", ""}) == places.log + ":1 adapted");
  }
  CHECK_THROWS_AS(RecordStore({scratch.file("none.jsonl"), "", ""}), UserError);
  put_file(places.local + "/c.jsonl", "rubbish\n");
  REQUIRE(RecordStore(places).warnings().size() == 1);
  CHECK_THAT(RecordStore(places).warnings()[0], Contains("c.jsonl:1"));
}
