#include <tenon/driver/driver.h>
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

/// Counts of several reports as one, and each remark once.
TuneReport merged(const std::vector<TuneReport>& reports) {
  TuneReport out;
  for (const TuneReport& r : reports) {
    out.trials += r.trials;
    out.resumed += r.resumed;
    out.seconds = std::max(out.seconds, r.seconds);
    for (const auto& [status, count] : r.statuses) out.statuses[status] += count;
    for (const auto& [reason, count] : r.reasons) out.reasons[reason] += count;
    for (const auto& [reason, count] : r.dropped) out.dropped[reason] += count;
    if (out.remarks.empty()) out.remarks = r.remarks;
  }
  return out;
}

void print_counts(const TuneReport& report) {
  std::string counts;
  for (const auto& [status, count] : report.statuses)
    counts += fmt::format(" {} {}", count, status);
  fmt::print("  {} trials in {:.1f} s ({} resumed):{}\n", report.trials, report.seconds,
             report.resumed, counts);
  if (report.settled) fmt::print("  ended early: the last trials won less than 0.5%\n");
  for (const auto& [reason, count] : report.reasons) fmt::print("    {:5} x {}\n", count, reason);
  if (!report.dropped.empty()) fmt::print("  dropped before any trial:\n");
  for (const auto& [reason, count] : report.dropped) fmt::print("    {:5} x {}\n", count, reason);
  for (const std::string& remark : report.remarks) fmt::print("  {}\n", remark);
}

void print_best(const std::string& title, const TuneReport& report) {
  if (report.best.where.path.empty()) {
    fmt::print("{}: no candidate worked\n", title);
    return;
  }
  const double best = median_us(report.best.record), standard = median_us(report.baseline.record);
  // The smallest kernels of a network take some nanoseconds.
  const int digits = standard < 10 ? 3 : 1;
  fmt::print("{0}: default {1:.{6}f} us, best {2:.{6}f} us ({3:.2f}x) {4} {5}\n", title, standard,
             best, best > 0 ? standard / best : 0, report.best.record.template_name,
             report.best.where.text(), digits);
}

void tune_operator(const TuneCommand& command) {
  refuse_network_options(command);
  const Task task = operator_task(command.subject, command.parsed_target());
  const TuneReport report = tune_with_report(task, tune_options(command));
  print_warnings(report.warnings);
  print_failure_files(report);
  if (command.json) return;
  print_best(task.name, report);
  print_counts(report);
}

void tune_network(const TuneCommand& command) {
  Network network = Network::load(command.subject[0], network_options(command));
  TuneOptions options = tune_options(command);
  if (command.trials < 0 && command.time.empty())
    options.trials = kTrialsPerKernel * static_cast<int64_t>(network.kernels().size());
  const std::vector<TuneReport> reports = tune(network, options);
  if (!reports.empty()) print_warnings(reports[0].warnings);  // one log for all
  bool worked = reports.empty();
  for (size_t k = 0; k < reports.size(); ++k) {
    print_failure_files(reports[k]);
    if (!command.json) print_best(network.kernels()[k].name, reports[k]);
    worked |= !reports[k].best.where.path.empty();
  }
  if (!command.json) print_counts(merged(reports));
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
