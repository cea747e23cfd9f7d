// How many candidates a second the tuner builds, verifies and measures on all cores of this
// machine, and where the time goes. Nothing passes or fails here.
//
//   ninja -C build perf_tuning && build/bin/perf_tuning [seconds a task [search [OPERATOR
//   NAME=VALUE..]]]
//
// Without an operator: five that are below and above a millisecond.
#include <fmt/format.h>
#include <tenon/driver/driver.h>

#include <cstdlib>
#include <filesystem>

using namespace tenon;

namespace {

void measure(const std::vector<std::string>& operator_words, double seconds,
             const std::string& search, SpaceKind space) {
  const Task task = operator_task(operator_words, Target::host());
  TuneOptions options;
  options.time_s = seconds;
  options.trials = INT64_MAX;
  options.search = search;
  options.space = space;
  options.quiet = true;
  options.log = (std::filesystem::temp_directory_path() /
                 fmt::format("tenon-perf-tuning-{}.jsonl", ::getpid()))
                    .string();
  double compile_s = 0;  // of the processes that compile, added up
  options.on_trial = [&](const LoggedRecord& r) {
    if (r.record.comparison == 0) compile_s += r.record.compile_us * 1e-6;
  };
  const TuneReport report = tune_with_report(task, options);
  std::filesystem::remove(options.log);
  double known = 0;
  std::string stages;
  for (const auto& [stage, s] : report.stage_s) {
    known += s;
    stages += fmt::format("  {} {:.2f}", stage, s);
  }
  std::string counts;
  for (const auto& [status, count] : report.statuses)
    counts += fmt::format("{} {}  ", count, status);
  std::string words;
  for (const std::string& word : operator_words) words += word + " ";
  fmt::print(
      "{}\n  {} trials in {:.2f} s: {:.1f}/s   {}\n  seconds:{}  else {:.2f}; compilers {:.2f}\n",
      words, report.trials, report.seconds, static_cast<double>(report.trials) / report.seconds,
      counts, stages, report.seconds - known, compile_s);
  fmt::print("  default {:.1f} us, best {:.1f} us\n", median_us(report.baseline.record),
             median_us(report.best.record));
  for (const std::string& remark : report.remarks) fmt::print("  {}\n", remark);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 6;
  const std::string search = argc > 2 ? argv[2] : "guided";
  const SpaceKind space = parse_space_kind(argc > 3 ? argv[3] : "both");
  if (argc > 4) {
    measure({argv + 4, argv + argc}, seconds, search, space);
    return 0;
  }
  const std::vector<std::vector<std::string>> tasks = {
      {"matmul", "m=1024", "n=1024", "k=1024"},
      {"softmax", "rows=1024", "columns=1024"},
      {"layer_norm", "rows=1024", "columns=768"},
      {"conv2d", "c_in=64", "h=28", "w=28", "c_out=64", "k=3", "pad=1"},
      {"conv2d", "c_in=256", "h=14", "w=14", "c_out=256", "k=3", "pad=1"},
      {"matmul", "m=128", "n=128", "k=128"}};
  for (const auto& task : tasks) measure(task, seconds, search, space);
}
