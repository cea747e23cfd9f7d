#include <tenon/driver/driver.h>
#include <tenon/support/error.h>
#include <tenon/support/stats.h>
#include <tenon/target/peaks.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

struct ReplayCommand : CommandOptions {
  std::string model;
  bool check = false, time = false;
};

// A file by itself is one that a failed trial left: its only line.
LogRef place_of(const std::string& text) {
  return std::filesystem::is_regular_file(text) && !text.ends_with(".jsonl") ? LogRef{text, 1}
                                                                             : LogRef::parse(text);
}

RunnerOptions runner_options(const ReplayCommand& command) {
  RunnerOptions out;
  out.threads = command.parsed_threads();
  if (command.time) {
    out.samples = 15;
    out.sample_us = 10'000;
  }
  return out;
}

BenchRow row_of(const Task& task, const std::string& schedule, const Measurement& m, int threads) {
  BenchRow row;
  row.kernel = task.name;
  row.args = task.args;
  row.target = task.target.name;
  row.threads = threads;
  row.schedule = schedule;
  row.check = m.check;
  if (m.samples_us.empty()) return row;
  row.median_us = median(m.samples_us);
  row.mad_us = median_deviation(m.samples_us);
  if (task.flops > 0 && row.median_us > 0) {
    row.gflops = task.flops / row.median_us * 1e-3;
    row.peak_fraction = row.gflops / measure_fma_gflops(task.target, threads, 0.5);
  }
  return row;
}

void print_result(const ReplayCommand& command, const std::string& where, const Record& record,
                  const Measurement& m) {
  if (m.status != TrialStatus::ok) {
    fmt::print("{}: {}: {}\n", where, name(m.status), m.reason);
    return;
  }
  fmt::print("{}: check {}\n", where, name(m.check));
  if (!command.time) return;
  const std::string then = record.samples_us.empty() ? std::string("never timed")
                                                     : fmt::format("{:.2f} us", median_us(record));
  fmt::print("{}: {:.2f} us now (median of {}), {} in the record\n", where, median(m.samples_us),
             m.samples_us.size(), then);
}

void run_replay(ReplayCommand command) {
  const LogRef where = place_of(command.subject[0]);
  const Record record = read_record(where);
  if (command.threads == 0) command.threads = record.threads;
  const Task task = task_of_record(record, command.model, network_options(command));
  const bool is_failure_file = where.text() != command.subject[0];
  if (!command.check && !command.time && !is_failure_file) {
    const Candidate candidate = candidate_of(task, record);
    const Kernel kernel = compile(candidate.program, task.target);
    fmt::print("{} replays: {} steps, compiled in {:.1f} ms\n", where.text(),
               candidate.trace.size(), kernel.compile_us() / 1000);
    return;
  }
  const RunnerOptions options = runner_options(command);
  const Measurement m = remeasure(task, record, options);
  if (command.json) {
    fmt::print("{}\n", row_of(task, where.text(), m, options.threads).to_json());
  } else {
    print_result(command, command.subject[0], record, m);
  }
  if (m.status != TrialStatus::ok) throw CheckFailed{};
}

}  // namespace

void add_replay(CLI::App& app) {
  auto command = std::make_shared<ReplayCommand>();
  CLI::App* verb = app.add_subcommand(
      "replay", "rebuild a logged schedule, check its results, time it; reproduce a failed trial");
  verb->add_option("record", command->subject, "LOG:LINE, or the file that a failed trial left")
      ->required()
      ->expected(1);
  verb->add_option("--model", command->model, "the network that LOG:LINE was tuned for");
  add_network(*verb, *command);
  verb->add_flag("--check", command->check, "compare its outputs with the unscheduled kernel's");
  verb->add_flag("--time", command->time, "time it");
  add_common(*verb, *command);
  verb->callback([command] { run_replay(*command); });
}

}  // namespace tenon
