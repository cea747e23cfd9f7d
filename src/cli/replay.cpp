#include <tenon/driver/driver.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
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

void run_replay(const ReplayCommand& command) {
  const LogRef where = LogRef::parse(command.subject[0]);
  const Record record = read_record(where);
  const Task task = task_of_record(record, command.model, network_options(command));
  const Trace trace = trace_from_json(record.trace);
  if (!command.check && !command.time) {
    const Kernel kernel = compile(task, trace);
    fmt::print("{} replays: {} steps, compiled in {:.1f} ms\n", where.text(), trace.size(),
               kernel.compile_us() / 1000);
    return;
  }
  BenchOptions options;
  options.threads = command.threads == 0 ? record.threads : command.parsed_threads();
  options.rounds = command.time ? 9 : 1;
  options.floor_us = command.time ? 20'000 : 0;
  const BenchRow row = bench(task, {{where.text(), trace}}, options).at(0);
  if (command.json) {
    fmt::print("{}\n", row.to_json());
  } else {
    if (command.check) fmt::print("{}: check {}\n", where.text(), name(row.check));
    if (command.time) {
      fmt::print("{}: {:.2f} us now (median of {}), {:.2f} us in the record\n", where.text(),
                 row.median_us, options.rounds, median_us(record));
    }
  }
  if (row.check == CheckResult::failed) throw CheckFailed{};
}

}  // namespace

void add_replay(CLI::App& app) {
  auto command = std::make_shared<ReplayCommand>();
  CLI::App* verb =
      app.add_subcommand("replay", "rebuild a logged schedule, check its results, time it");
  verb->add_option("record", command->subject, "LOG:LINE")->required()->expected(1);
  verb->add_option("--model", command->model, "the network that LOG:LINE was tuned for");
  add_network(*verb, *command);
  verb->add_flag("--check", command->check, "compare its outputs with the unscheduled kernel's");
  verb->add_flag("--time", command->time, "time it");
  add_common(*verb, *command);
  verb->callback([command] { run_replay(*command); });
}

}  // namespace tenon
