#include <tenon/driver/driver.h>
#include <tenon/driver/tune_summary.h>
#include <tenon/support/error.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/signals.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

constexpr int64_t kTrialsPerKernel = 32;  // of a network, unless the user says how many

struct TuneCommand : CommandOptions {
  std::string time;
  int64_t trials = -1, patience = -1;
  uint64_t seed = 0;
  std::string search = "guided", space = "both", ranker;
  bool cold = false;
};

TuneOptions tune_options(const TuneCommand& command) {
  TuneOptions out;
  out.time_s = command.time.empty() ? 0 : parse_seconds(command.time);
  // With a time limit alone the trials are not limited.
  out.trials = command.trials >= 0 ? command.trials : command.time.empty() ? 100 : INT64_MAX;
  constexpr int64_t kPatience = 256;
  const bool to_the_end = command.trials >= 0;  // the user counts
  out.patience = command.patience >= 0 ? command.patience : to_the_end ? 0 : kPatience;
  out.log = command.log;
  out.seed = command.seed;
  out.threads = command.parsed_threads();
  out.search = command.search;
  out.space = parse_space_kind(command.space);
  out.ranker = command.ranker;
  out.cold = command.cold;
  out.quiet = command.quiet;
  out.stop = &interrupted();
  if (command.json) {
    out.on_trial = [](const LoggedRecord& logged) {
      fmt::print("{}\n", to_json_line(logged.record));
    };
  }
  return out;
}

void print_failure_files(const TuneReport& report) {
  for (const std::string& file : report.failure_files)
    fmt::print(stderr, "tenon: a trial failed that should not; tenon replay {} reproduces it\n",
               file);
}

void give(const TuneCommand& command, const NamedReports& reports) {
  if (!reports.empty()) print_warnings(reports[0].second.warnings);  // one log for all
  for (const auto& [title, report] : reports) print_failure_files(report);
  fmt::print("{}", command.json ? summary_json(reports) + "\n" : summary_text(reports));
}

void tune_operator(const TuneCommand& command) {
  refuse_network_options(command);
  const Task task = operator_task(command.subject, command.parsed_target());
  try {
    give(command, {{task.name, tune_with_report(task, tune_options(command))}});
  } catch (const TuneError& e) {
    TuneReport report = e.report;
    report.failure = e.what();
    print_failure_files(report);
    print_warnings(report.warnings);
    if (command.json) fmt::print("{}\n", summary_json({{task.name, report}}));
    throw;
  }
}

void tune_network(const TuneCommand& command) {
  Network network = Network::load(command.subject[0], network_options(command));
  TuneOptions options = tune_options(command);
  if (command.trials < 0 && command.time.empty())
    options.trials = kTrialsPerKernel * static_cast<int64_t>(network.kernels().size());
  const std::vector<TuneReport> reports = tune(network, options);
  NamedReports named;
  bool worked = reports.empty();
  for (size_t k = 0; k < reports.size(); ++k) {
    named.emplace_back(network.kernels()[k].name, reports[k]);
    worked |= !reports[k].best.where.path.empty();
  }
  give(command, named);
  if (!worked && !interrupted()) throw CheckFailed{};
}

void run_tune(const TuneCommand& command) {
  try {
    is_model(command.subject) ? tune_network(command) : tune_operator(command);
  } catch (const TuneError&) {
    if (!interrupted()) throw;  // stopped before anything worked
  }
  if (interrupted()) throw Interrupted{};
}

}  // namespace

void add_tune(CLI::App& app) {
  auto command = std::make_shared<TuneCommand>();
  CLI::App* verb = app.add_subcommand(
      "tune", "search schedules by measuring on this machine; resumes from its log");
  verb->add_option("subject", command->subject,
                   "model.onnx, or an operator and its arguments: matmul m=1024")
      ->required();
  add_network(*verb, *command);
  verb->add_option("--time", command->time,
                   "budget: 60s, 5m; alone it leaves the trials unlimited");
  verb->add_option("--trials", command->trials,
                   "so many more trials in all, whatever their status (default 100; 32 for each "
                   "kernel of a network)");
  verb->add_option("--patience", command->patience,
                   "end a task when so many trials in a row won less than 0.5%; 0: never (default "
                   "256, with --trials 0)");
  verb->add_option("--log", command->log, "file of records (default tuning_logs/NAME.jsonl)");
  verb->add_option("--seed", command->seed, "of the search and the inputs")->capture_default_str();
  verb->add_option("--search", command->search, "guided, random, grid or evolutionary")
      ->capture_default_str();
  verb->add_option("--ranker", command->ranker,
                   "file of tenon log train (default: the shipped one; none: no such file)");
  verb->add_option("--space", command->space,
                   "both, templates (written by hand) or sketches (by rules, for any formula)")
      ->capture_default_str();
  verb->add_flag("--cold", command->cold, "time kernels with their arguments out of the caches");
  add_common(*verb, *command);
  verb->callback([command] {
    catch_interrupts();
    run_tune(*command);
  });
}

}  // namespace tenon
