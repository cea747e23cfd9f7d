#include <tenon/driver/ranker.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

struct TrainCommand : CommandOptions {
  std::string model, out;
};

nlohmann::ordered_json json_of(const RankQuality& q) {
  return {{"rho", q.rho}, {"hits", q.hits}, {"reached", q.reached}};
}

void print_json(const RankerTraining& t) {
  for (const UnseenQuality& q : t.unseen) {
    const nlohmann::ordered_json line = {{"task", q.task},
                                         {"points", q.points},
                                         {"draft", json_of(q.draft)},
                                         {"ranker", json_of(q.ranker)}};
    fmt::print("{}\n", line.dump());
  }
}

void run_train(const TrainCommand& command) {
  const RankerTraining t = train_ranker(command.subject, command.model, network_options(command));
  print_warnings(t.warnings);
  if (const auto failure = write_file(command.out, t.ranker.to_json()))
    throw UserError(fmt::format("{}: {}", command.out, failure->message));
  if (command.json) return print_json(t);
  fmt::print("{}", quality_table(t.unseen));
  fmt::print("{}: learned from {} trials of {} tasks\n", command.out, t.rows, t.tasks);
  for (const auto& [reason, count] : t.passed_over) fmt::print("  {:5} x {}\n", count, reason);
}

}  // namespace

void add_log_train(CLI::App& log) {
  auto command = std::make_shared<TrainCommand>();
  CLI::App* verb = log.add_subcommand(
      "train",
      "a ranker of schedules from the logs' trials, and how well it ranks unseen operators");
  verb->add_option("logs", command->subject, "logs: LOG.jsonl ..")->required();
  verb->add_option("-o,--output", command->out,
                   "the ranker's file: tenon tune --ranker takes it; as "
                   "tuning_logs/shipped/ranker.json it is always used")
      ->required();
  verb->add_option("--model", command->model, "the network that the logs were tuned for");
  add_network(*verb, *command);
  add_common(*verb, *command);
  verb->callback([command] { run_train(*command); });
}

}  // namespace tenon
