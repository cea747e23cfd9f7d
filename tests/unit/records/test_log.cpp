#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "sample.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

void append_all(const std::string& path, int writer, int count) {
  RecordLog log(path);
  for (int i = 0; i < count; ++i) {
    Record r = sample_record(100 + i, i);
    r.task = "writer" + std::to_string(writer);
    log.append(r);
  }
}

pid_t in_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  return child;
}

}  // namespace

TEST_CASE("what is appended is what is read, across openings") {
  ScratchFolder scratch;
  const std::string path = scratch.file("deep/er/log.jsonl");
  for (int i = 0; i < 3; ++i) RecordLog(path).append(sample_record(100, i));
  RecordLog one(path), other(path);
  CHECK(one.append(sample_record(100, 3)).line == 4);
  CHECK(other.append(sample_record(100, 4)).line == 5);
  CHECK(one.append(sample_record(100, 5)).line == 6);
  LoadedLog log = load_log(path);
  CHECK(log.warnings.empty());
  REQUIRE(log.records.size() == 6);
  CHECK(log.records[2].record == sample_record(100, 2));
  CHECK(log.records[2].where == LogRef{path, 3});
  CHECK(read_record({path, 2}) == sample_record(100, 1));
}

TEST_CASE("a log that cannot be written is refused when it is opened") {
  ScratchFolder scratch;
  put_file(scratch.file("plain"), "x");
  CHECK_THROWS_WITH(RecordLog(scratch.file("plain/log.jsonl")), Contains("cannot write the log"));
  CHECK_THROWS_WITH(RecordLog(scratch.path()), Contains("cannot write the log"));
  CHECK_THROWS_AS(RecordLog("/proc/tenon/log.jsonl"), UserError);
  REQUIRE(::mkfifo(scratch.file("pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(RecordLog(scratch.file("pipe")), Contains("not a file"));
}

TEST_CASE("a log that cannot be read is refused in words") {
  ScratchFolder scratch;
  CHECK_THROWS_WITH(load_log(scratch.file("none.jsonl")), Contains("No such file"));
  CHECK_THROWS_WITH(load_log(scratch.path()), Contains("directory"));
}

TEST_CASE("damaged and newer lines are skipped with a warning and stay as they are") {
  ScratchFolder scratch;
  const std::string path = scratch.file("log.jsonl");
  const std::string good = to_json_line(sample_record());
  std::string newer = good;
  newer.replace(newer.find("\"schema\":1"), 10, "\"schema\":9");
  const std::string text = good + "\n" + newer + "\n\nrubbish\n" + good + "\n" + good.substr(0, 70);
  put_file(path, text);
  LoadedLog log = load_log(path);
  CHECK(log.records.size() == 2);
  CHECK(log.records[1].where.line == 5);
  REQUIRE(log.warnings.size() == 3);
  CHECK_THAT(log.warnings[0], Contains("log.jsonl:2: skipped: schema 9 is newer"));
  CHECK_THAT(log.warnings[1], Contains("log.jsonl:4: skipped: not a whole JSON object"));
  CHECK_THAT(log.warnings[2], Contains("log.jsonl:6: skipped: cut off"));

  CHECK(RecordLog(path).append(sample_record(50, 1)) == LogRef{path, 7});
  CHECK(file_text(path) == text + "\n" + to_json_line(sample_record(50, 1)) + "\n");
  CHECK(load_log(path).records.size() == 3);
}

TEST_CASE("a whole last line that only lacks its line break is a record") {
  ScratchFolder scratch;
  const std::string path = scratch.file("log.jsonl");
  put_file(path, to_json_line(sample_record()));
  CHECK(load_log(path).records.size() == 1);
  RecordLog(path).append(sample_record(50, 1));
  CHECK(load_log(path).records.size() == 2);
  CHECK(load_log(path).warnings.empty());
}

TEST_CASE("many damaged lines give few warnings") {
  ScratchFolder scratch;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "{\n";
  put_file(scratch.file("log.jsonl"), text);
  LoadedLog log = load_log(scratch.file("log.jsonl"));
  REQUIRE(log.warnings.size() == 21);
  CHECK_THAT(log.warnings.back(), Contains("980 more lines skipped"));
}

TEST_CASE("a line without end costs no memory") {
  ScratchFolder scratch;
  const std::string path = scratch.file("zeros");
  put_file(path, "");
  REQUIRE(::truncate(path.c_str(), int64_t{1} << 28) == 0);
  LoadedLog log = load_log(path);
  CHECK(log.records.empty());
  REQUIRE(log.warnings.size() == 1);
  CHECK_THAT(log.warnings[0], Contains(":1: skipped: longer than 4 MiB"));
}

TEST_CASE("several programs append at once and no line is torn") {
  ScratchFolder scratch;
  const std::string path = scratch.file("log.jsonl");
  std::vector<pid_t> children;
  for (int w = 0; w < 4; ++w) children.push_back(in_child([&] { append_all(path, w, 100); }));
  for (pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  LoadedLog log = load_log(path);
  CHECK(log.warnings.empty());
  CHECK(log.records.size() == 400);
}

TEST_CASE("a writer killed at any instant loses at most its last line") {
  ScratchFolder scratch;
  const std::string path = scratch.file("log.jsonl");
  size_t before = 0;
  for (int round = 0; round < 10; ++round) {
    const pid_t child = in_child([&] { append_all(path, 0, 1000000); });
    ::usleep(5000 + 1000 * round);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    RecordLog(path).append(sample_record(1, round));  // must not wait for the dead one's lock
    LoadedLog log = load_log(path);
    CHECK(log.warnings.size() <= static_cast<size_t>(round) + 1);
    CHECK(log.records.size() > before);
    CHECK(log.records.back().record == sample_record(1, round));
    before = log.records.size();
  }
}

TEST_CASE("what others append is heard of once, with its place") {
  ScratchFolder scratch;
  const std::string path = scratch.file("log.jsonl");
  RecordLog(path).append(sample_record(100, 0));
  RecordLog one(path), other(path);
  CHECK(one.news().empty());
  other.append(sample_record(50, 1));
  one.append(sample_record(60, 2));
  other.append(sample_record(70, 3));
  const std::vector<LoggedRecord> news = one.news();
  REQUIRE(news.size() == 2);
  CHECK(news[0].record == sample_record(50, 1));
  CHECK(news[0].where == LogRef{path, 2});
  CHECK(news[1].record == sample_record(70, 3));
  CHECK(news[1].where == LogRef{path, 4});
  CHECK(one.news().empty());
  REQUIRE(other.news().size() == 1);
  SECTION("a damaged line is none, and lines keep their numbers") {
    std::ofstream(path, std::ios::app) << "rubbish\n{\"half\":";
    CHECK(one.news().empty());
    CHECK(other.append(sample_record(80, 4)) == LogRef{path, 7});
    const std::vector<LoggedRecord> more = one.news();
    REQUIRE(more.size() == 1);
    CHECK(more[0].where == LogRef{path, 7});
    CHECK(read_record(more[0].where) == more[0].record);
  }
  SECTION("a log that was cut starts anew") {
    REQUIRE(::truncate(path.c_str(), 0) == 0);
    CHECK(one.append(sample_record(90, 5)) == LogRef{path, 1});
    CHECK(one.news().empty());
  }
}

TEST_CASE("a full disk: the error names the log, and nothing that was stored is damaged") {
  ScratchFolder scratch;
  const std::string path = scratch.file("log.jsonl");
  const std::string line = to_json_line(sample_record()) + "\n";
  const auto write_all = [&](const std::string& file, int64_t bytes) {
    std::string said = "nothing";
    const rlimit limit{static_cast<rlim_t>(bytes), RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      append_all(file, 0, 100);
    } catch (const UserError& e) {
      said = e.what();
    }
    return said;
  };
  // In a process of its own: the limit is one of the process.
  const pid_t child = in_child([&] {
    const std::string full = write_all(path, 10 * static_cast<int64_t>(line.size()));
    const bool fine = full.find("cannot write the log " + path + ": File too large") == 0 &&
                      full.find("try: make room") != std::string::npos;
    if (!fine) ::_exit(1);
    const std::string device = write_all("/dev/full", 1 << 20);
    ::_exit(device.find("cannot write the log /dev/full: No space left on device") == 0 ? 0 : 2);
  });
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  const LoadedLog log = load_log(path);
  CHECK(log.warnings.empty());
  CHECK(log.records.size() >= 5);
  CHECK(file_text(path).back() == '\n');
  RecordLog(path).append(sample_record(1, 7));
  CHECK(load_log(path).records.size() == log.records.size() + 1);
  CHECK(load_log("/dev/full").records.empty());
}

TEST_CASE("a deleted log is noticed") {
  ScratchFolder scratch;
  RecordLog log(scratch.file("log.jsonl"));
  std::filesystem::remove(scratch.file("log.jsonl"));
  CHECK_THROWS_WITH(log.append(sample_record()), Contains("deleted"));
}

TEST_CASE("LOG:LINE") {
  CHECK(LogRef::parse("a:b.jsonl:17") == LogRef{"a:b.jsonl", 17});
  CHECK(LogRef::parse("x:1").text() == "x:1");
  for (const char* bad : {"x", "x:", ":3", "x:0", "x:-1", "x:1e3", "x:99999999999999999999"})
    CHECK_THROWS_WITH(LogRef::parse(bad), Contains("is no place in a log"));
  ScratchFolder scratch;
  put_file(scratch.file("log"), to_json_line(sample_record()) + "\n\nrubbish\n");
  CHECK_THROWS_WITH(read_record({scratch.file("log"), 4}), Contains("the log has 3"));
  CHECK_THROWS_WITH(read_record({scratch.file("log"), 2}), Contains("empty"));
  CHECK_THROWS_WITH(read_record({scratch.file("log"), 3}), Contains("no usable record"));
}
