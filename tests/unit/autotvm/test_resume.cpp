#include <signal.h>
#include <sys/wait.h>
#include <tenon/support/hash.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "fake_session.h"

using namespace tenon;
using Catch::Matchers::Contains;

// What is tried next is a function of the log and the seed: a session that ends at any instant, and
// is started again, ends as one that nobody disturbed. On SimulatedRunner, which answers from a log
// that has every point of the space.
namespace {

constexpr int64_t kTrials = 60;
constexpr int kBatch = 4;

/// 6 x 6 x 6 points, a sixth of them refused.
Task rugged_task() {
  return tunable([](Schedule& s, Knobs& knob) {
    const int64_t f = knob.pick("f", {1, 2, 3, 5, 7, 9}, 1), g = knob.pick("g", {1, 2, 3, 5, 7, 9}),
                  h = knob.pick("h", {1, 2, 3, 4, 5, 6}, 1);
    s.split("i", f);
    s.split("k", g);
    s.split(h == 4 ? "nowhere" : "i.i", h);
  });
}

/// Points near each other take like times, with ups and downs; some crash.
std::vector<LoggedRecord> exhaustive_log() {
  std::vector<LoggedRecord> out;
  const std::unique_ptr<Search> grid =
      grid_search(TaskSpace(rugged_task(), SpaceKind::templates).spaces());
  while (!grid->done()) {
    for (const SpacePoint& at : grid->propose(16)) {
      Record r;
      r.template_name = "split";
      r.knobs = at.point.to_json();
      const uint64_t hash = hash_text(r.knobs);
      const auto f = static_cast<double>(at.point.number("f")),
                 g = static_cast<double>(at.point.number("g")),
                 h = static_cast<double>(at.point.number("h"));
      r.status = hash % 11 == 0 ? TrialStatus::run_error : TrialStatus::ok;
      r.check = hash % 11 == 0 ? CheckResult::not_run : CheckResult::passed;
      if (hash % 11 == 0) r.reason = "the kernel crashed (SIGSEGV)";
      const double us = 1000 / (f * g) + 10 * h + static_cast<double>(hash % 1000) * 0.05;
      if (hash % 11 != 0) r.samples_us = {us, us * 1.01, us};
      out.push_back({r, {"exhaustive", static_cast<int64_t>(out.size()) + 1}});
    }
  }
  return out;
}

const std::vector<LoggedRecord>& recorded() {
  static const std::vector<LoggedRecord> records = exhaustive_log();
  return records;
}

/// Takes a while for each answer, as hardware does.
struct SlowRunner : Runner {
  std::unique_ptr<Runner> inner = simulated_runner(recorded());
  std::vector<Measurement> measure(const std::vector<Candidate>& candidates) override {
    ::usleep(2000);
    return inner->measure(candidates);
  }
  std::vector<Measurement> compare(const std::vector<Candidate>& candidates,
                                   double until) override {
    return inner->compare(candidates, until);
  }
};

/// Trials of the log: all lines but those that measured a schedule again.
std::vector<LoggedRecord> trials_in(const std::string& log) {
  std::vector<LoggedRecord> out;
  if (!std::filesystem::exists(log)) return out;
  std::set<int64_t> seen;
  for (LoggedRecord& r : load_log(log).records)
    if (seen.insert(r.record.trial).second) out.push_back(std::move(r));
  return out;
}

/// To so many trials in all, default included.
TuneReport go_on(TuneOptions options, std::unique_ptr<Runner> runner, int64_t total = kTrials) {
  const auto made = static_cast<int64_t>(trials_in(options.log).size());
  options.trials = total - std::max<int64_t>(made, 1);
  TuneSession session(rugged_task(), options, std::move(runner));
  session.start();
  while (!session.finished()) session.run(kBatch);
  return session.finish();
}

/// What was tried, in order, and what came of it.
std::string end_of(const std::string& log) {
  std::string out;
  for (const LoggedRecord& r : trials_in(log)) {
    out += fmt::format("{} {} {} {}\n", r.record.trial, r.record.knobs, name(r.record.status),
                       fmt::join(r.record.samples_us, " "));
  }
  return out;
}

std::string best_of(const TuneReport& report) {
  return report.best.record.knobs + fmt::format(" {}", median_us(report.best.record));
}

std::string text_of(const std::string& path) { return read_file(path).value(); }

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

uintmax_t size_of(const std::string& path) {
  std::error_code none;
  const uintmax_t size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

int kills() {
  const char* asked = std::getenv("TENON_KILLS");
  return asked ? std::atoi(asked) : 50;
}

}  // namespace

TEST_CASE("a log that ends after any line, or within one, resumes to the same end") {
  const std::string search = GENERATE("evolutionary", "guided");
  INFO(search);
  Scratch whole, cut;
  whole.options.search = cut.options.search = search;
  const TuneReport undisturbed = go_on(whole.options, simulated_runner(recorded()));
  const std::string wanted = end_of(whole.options.log), text = text_of(whole.options.log);
  REQUIRE(trials_in(whole.options.log).size() == kTrials);
  // A guided search tries no point that is refused.
  CHECK(undisturbed.statuses.count("refused") == (search == "guided" ? 0 : 1));
  CHECK(undisturbed.statuses.at("run_error") > 0);
  size_t end = 0;
  for (int lines = 0; end < text.size(); ++lines) {
    for (const size_t keep : {end, std::min(end + 400, text.size())}) {
      put(cut.options.log, text.substr(0, keep));
      const TuneReport resumed = go_on(cut.options, simulated_runner(recorded()));
      INFO("after " << lines << " lines, " << keep - end << " bytes more");
      REQUIRE(end_of(cut.options.log) == wanted);
      REQUIRE(best_of(resumed) == best_of(undisturbed));
      REQUIRE(resumed.warnings.size() <= 1);
      if (keep > end && keep < text.size())
        REQUIRE_THAT(resumed.warnings.at(0), Contains("cut off in the middle of a line"));
    }
    end = text.find('\n', end) + 1;
  }
}

// 50 times, or as often as TENON_KILLS says; half of them wait until something is in the log, so
// that they come while it is written.
TEST_CASE("a tuner that is killed at random instants ends as one that nobody disturbed") {
  constexpr int64_t kMany = 170;
  Scratch whole, killed;
  const TuneReport undisturbed = go_on(whole.options, simulated_runner(recorded()), kMany);
  Rng rng(1);
  int advanced = 0;
  for (int round = 0; round < kills(); ++round) {
    const size_t before = trials_in(killed.options.log).size();
    const uintmax_t size = size_of(killed.options.log);
    const pid_t child = ::fork();
    if (child == 0) {
      go_on(killed.options, std::make_unique<SlowRunner>(), kMany);
      ::_exit(0);
    }
    bool ended = false;
    for (int waits = 0; round % 2 == 0 && waits < 100000 && !ended; ++waits) {
      if (size_of(killed.options.log) != size) break;
      ended = ::waitpid(child, nullptr, WNOHANG) == child;
      ::usleep(100);
    }
    ::usleep(static_cast<useconds_t>(rng.below(2500)));
    if (!ended) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    const std::vector<LoggedRecord> after = trials_in(killed.options.log);
    REQUIRE(after.size() >= before);  // nothing is lost
    advanced += after.size() > before && after.size() < kMany;
  }
  INFO(advanced << " of " << kills() << " kills came while trials were made");
  CHECK(advanced >= kills() / 5);
  const TuneReport resumed = go_on(killed.options, simulated_runner(recorded()), kMany);
  CHECK(end_of(killed.options.log) == end_of(whole.options.log));
  CHECK(best_of(resumed) == best_of(undisturbed));
  CHECK(load_log(killed.options.log).warnings.size() <= static_cast<size_t>(kills()));
}

TEST_CASE("a log that was tuned in parts of any size is that of one session") {
  Scratch whole, parts;
  go_on(whole.options, simulated_runner(recorded()));
  parts.options.trials = 7;
  while (trials_in(parts.options.log).size() < kTrials) {
    TuneSession session(rugged_task(), parts.options, simulated_runner(recorded()));
    session.start();
    while (!session.finished()) session.run(kBatch);
    session.finish();
    parts.options.trials =
        std::min<int64_t>(7, kTrials - static_cast<int64_t>(trials_in(parts.options.log).size()));
  }
  CHECK(end_of(parts.options.log) == end_of(whole.options.log));
}

TEST_CASE("another seed goes on from what the log has, and repeats none of it") {
  Scratch scratch;
  scratch.options.trials = 30;
  tune_fake(rugged_task(), scratch.options, simulated_runner(recorded()));
  scratch.options.seed = 8;
  const TuneReport report = tune_fake(rugged_task(), scratch.options, simulated_runner(recorded()));
  CHECK(report.resumed >= 31);
  std::multiset<std::string> points;
  for (const LoggedRecord& r : trials_in(scratch.options.log)) points.insert(r.record.knobs);
  CHECK(points.size() == 61);
  for (const std::string& point : points) CHECK(points.count(point) == 1);
}

TEST_CASE("two tuners on one log share their trials and repeat none") {
  Scratch scratch;
  scratch.options.trials = 25;
  SECTION("in turns") {
    TuneSession one(rugged_task(), scratch.options, simulated_runner(recorded())),
        other(rugged_task(), scratch.options, simulated_runner(recorded()));
    one.start();
    other.start();
    while (!one.finished() || !other.finished()) {
      one.run(kBatch);
      other.run(kBatch);
    }
    CHECK(best_of(one.finish()) == best_of(other.finish()));
  }
  SECTION("at the same time") {
    std::vector<pid_t> children;
    for (int k = 0; k < 2; ++k) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      tune_fake(rugged_task(), scratch.options, std::make_unique<SlowRunner>());
      ::_exit(0);
    }
    for (pid_t child : children) {
      int status = -1;
      ::waitpid(child, &status, 0);
      CHECK(status == 0);
    }
  }
  const LoadedLog log = load_log(scratch.options.log);
  CHECK(log.warnings.empty());  // every line is whole
  std::multiset<std::string> traces;
  for (const LoggedRecord& r : log.records) {
    const bool again = r.record.reason == "timed again beside the default schedule";
    if (r.record.status != TrialStatus::refused && !again) traces.insert(r.record.trace);
  }
  const std::string standard = log.records.front().record.trace;
  for (const std::string& trace : traces) {
    INFO(trace);
    // Each may have measured the default schedule: the one to beat.
    CHECK(traces.count(trace) <= (trace == standard ? 2U : 1U));
  }
}

TEST_CASE("a log of another CPU is kept, does not count, and the user hears of it") {
  Scratch scratch;
  scratch.options.trials = 5;
  tune_fake(tunable(), scratch.options, honest());
  std::string foreign;
  for (LoggedRecord& r : load_log(scratch.options.log).records) {
    r.record.target.cpu = "A CPU of another maker";
    r.record.samples_us = {0.001};
    foreign += to_json_line(r.record) + "\n";
    r.record.target.name = "x86-64/next";
    r.record.target.features.push_back("zz-of-tomorrow");
    foreign += to_json_line(r.record) + "\n";
  }
  put(scratch.options.log, foreign);
  const TuneReport report = tune_fake(tunable(), scratch.options, honest());
  CHECK(report.resumed == 0);
  CHECK(report.best.record.target.cpu == Target::host().cpu);
  CHECK(median_us(report.best.record) > 1);
  REQUIRE(report.warnings.size() == 2);
  CHECK_THAT(report.warnings[0],
             Contains("log.jsonl: ") && Contains("trial(s) of row_sums were made for the features "
                                                 "of x86-64/next (A CPU of another maker): they "
                                                 "stay and do not count here"));
  CHECK_THAT(report.warnings[1], Contains("on another CPU (A CPU of another maker)"));
  CHECK(text_of(scratch.options.log).substr(0, foreign.size()) == foreign);
}

TEST_CASE("a clock that was set back changes nothing") {
  Scratch forward, backward;
  go_on(forward.options, simulated_runner(recorded()));
  // The same trials, half of them made before the clock was set back by an hour at each line.
  std::string text;
  int64_t line = 0;
  for (LoggedRecord& r : load_log(forward.options.log).records) {
    if (++line > kTrials / 2) break;
    r.record.time = fmt::format("20{:02}-01-31T12:00:00Z", 99 - line);
    text += to_json_line(r.record) + "\n";
  }
  put(backward.options.log, text);
  const TuneReport report = go_on(backward.options, simulated_runner(recorded()));
  CHECK(report.warnings.empty());
  CHECK(end_of(backward.options.log) == end_of(forward.options.log));
}

TEST_CASE("only the text of a record's time comes from a clock that people set") {
  std::vector<std::string> found;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TENON_SOURCE_DIR "/autotvm")) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".cpp") && !path.ends_with(".h")) continue;
    const std::string text = text_of(path);
    for (const char* clock : {"std::time(", "system_clock", "gettimeofday", "CLOCK_REALTIME"})
      if (text.find(clock) != std::string::npos) found.push_back(entry.path().filename());
  }
  CHECK(found == std::vector<std::string>{"session.cpp"});
  CHECK(text_of(TENON_SOURCE_DIR "/src/runtime/cpu/timer.cpp").find("steady_clock") !=
        std::string::npos);
}
