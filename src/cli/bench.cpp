#include <tenon/driver/driver.h>

#include <tenon/support/error.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/options.h"
#include "cli/progress_line.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

struct BenchCommand : CommandOptions {
  int rounds = 9;
  bool unscheduled = false, whole = false;
  std::vector<std::string> against;
};

void print_rows(const std::vector<BenchRow>& rows, bool json) {
  if (!json) fmt::print("{}", bench_table(rows));
  for (const BenchRow& row : rows) {
    if (json) fmt::print("{}\n", row.to_json());
  }
}

/// The best of each log of --against, in their order.
std::vector<NamedTrace> best_of_logs(const Task& task, const BenchCommand& command) {
  std::vector<NamedTrace> out;
  for (const std::string& log : command.against) {
    const RecordStore store(RecordPlaces{log, "", ""});
    print_warnings(store.warnings());
    const auto best = recorded_schedule(task, store, command.parsed_threads());
    if (!best) {
      throw UserError(
          fmt::format("--against {}: it holds no record of {} {} for this CPU and {} thread(s)\n"
                      "  try: tenon log stats {}",
                      log, task.name, task.args, command.parsed_threads(), log));
    }
    out.push_back(*best);
  }
  return out;
}

void run_bench(const BenchCommand& command) {
  BenchOptions options;
  options.threads = command.parsed_threads();
  options.rounds = command.rounds;
  options.unscheduled = command.unscheduled;
  options.whole_only = command.whole;
  std::vector<BenchRow> rows;
  if (is_model(command.subject)) {
    if (!command.against.empty())
      throw UserError("--against is for operators\n  try: tenon bench model.onnx --log LOG");
    ProgressLine progress("bench: kernel", command.quiet);
    options.progress = progress.callback();
    const NetworkBench result =
        bench(command.subject[0], network_options(command), open_store(command), options);
    rows = result.rows;
    if (!command.whole) print_rows(rows, command.json);
    if (command.json) {
      fmt::print("{}\n", result.to_json());
    } else {
      fmt::print("{}: default {:.1f} us, tuned {:.1f} us\n", result.network, result.default_us,
                 result.median_us);
    }
  } else {
    refuse_network_options(command);
    const Task task = operator_task(command.subject, command.parsed_target());
    std::vector<NamedTrace> schedules = schedules_for(task, command);
    const std::vector<NamedTrace> others = best_of_logs(task, command);
    schedules.insert(schedules.end(), others.begin(), others.end());
    rows = bench(task, schedules, options);
    print_rows(rows, command.json);
  }
  bool failed = false;
  for (const BenchRow& row : rows) {
    failed |= row.check == CheckResult::failed;
    if (!row.reason.empty()) fmt::print(stderr, "tenon: {}\n", row.reason);
  }
  if (failed) throw CheckFailed{};
}

}  // namespace

void add_bench(CLI::App& app) {
  auto command = std::make_shared<BenchCommand>();
  CLI::App* verb =
      app.add_subcommand("bench", "tuned beside default, per kernel: time, GFLOP/s, share of peak");
  verb->add_option("subject", command->subject, "model.onnx, or an operator and its arguments")
      ->required();
  add_network(*verb, *command);
  verb->add_option("--log", command->log, "file of records to look in first");
  verb->add_option("--against", command->against,
                   "an operator: also the best of this other log, in the same turns; repeatable")
      ->allow_extra_args(false);
  verb->add_option("--rounds", command->rounds, "interleaved rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  verb->add_flag("--unscheduled", command->unscheduled,
                 "also the plain loop nest, for information");
  verb->add_flag("--whole", command->whole,
                 "a network as a whole only, not its kernels one by one");
  add_common(*verb, *command);
  verb->callback([command] { run_bench(*command); });
}

}  // namespace tenon
