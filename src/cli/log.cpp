#include <tenon/driver/check_log.h>
#include <tenon/records/summary.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

struct LogCommand : CommandOptions {
  std::string out, model;
  bool any_target = true;
};

LoadedLog load(const std::string& path) {
  LoadedLog log = load_log(path);
  print_warnings(log.warnings);
  return log;
}

/// Summaries of the tasks that --target and --threads ask for. UserError when there are none.
std::vector<TaskSummary> summaries(const LogCommand& command) {
  const std::string& path = command.subject.at(0);
  const LoadedLog log = load(path);
  const std::string wanted = command.any_target ? "" : Target::parse(command.target).fingerprint();
  std::vector<TaskSummary> out;
  for (TaskSummary& task : summarize_log(log.records)) {
    const Record& r = task.first.record;
    if (!wanted.empty() && r.target.fingerprint() != wanted) continue;
    if (command.threads > 0 && r.threads != command.threads) continue;
    out.push_back(std::move(task));
  }
  if (!out.empty()) return out;
  if (log.records.empty())
    throw UserError(fmt::format("{} holds no record\n  try: tenon tune --log {}", path, path));
  throw UserError(fmt::format(
      "{} holds {} records, none of this --target and --threads\n  try: tenon log best {}", path,
      log.records.size(), path));
}

Json head_of(const Record& r) {
  return {{"task", r.task},          {"args", Json::parse(r.args)},
          {"target", r.target.name}, {"cpu", r.target.cpu},
          {"threads", r.threads},    {"cold", r.cold},
          {"program", r.program},    {"tenon", r.tenon},
          {"llvm", r.llvm}};
}

std::string head_text(const Record& r) {
  return fmt::format("{} {} on {} ({}), {} thread(s){}", r.task, r.args, r.target.name,
                     r.target.cpu, r.threads, r.cold ? ", cold caches" : "");
}

double ratio_of(const TaskSummary& task) {
  return task.best && task.default_us > 0 ? task.default_us / median_us(task.best->record) : 0;
}

void print_best(const TaskSummary& task, bool json) {
  const Record& first = task.first.record;
  if (!json && !task.best) {
    fmt::print("{}: none of {} trials worked\n", head_text(first), task.trials);
    return;
  }
  Json line = head_of(first);
  line["trials"] = task.trials;
  line["best"] = nullptr;
  if (!task.best) return fmt::print("{}\n", line.dump());
  const Record& best = task.best->record;
  const std::string where = task.best->where.text();
  const double ratio = ratio_of(task);
  if (!json) {
    fmt::print("{}: {} {:.2f} us, {}\n  {} {}\n", head_text(first), where, median_us(best),
               ratio > 0 ? fmt::format("{:.2f}x its default's {:.2f}", ratio, task.default_us)
                         : "default not measured",
               best.template_name, best.knobs);
    return;
  }
  line["best"] = where;
  line["median_us"] = median_us(best);
  line["default_us"] = ratio > 0 ? Json(task.default_us) : Json();
  line["ratio"] = ratio > 0 ? Json(ratio) : Json();
  line["template"] = best.template_name;
  line["knobs"] = Json::parse(best.knobs);
  fmt::print("{}\n", line.dump());
}

void run_best(const LogCommand& command) {
  bool worked = false;
  for (const TaskSummary& task : summaries(command)) {
    print_best(task, command.json);
    worked |= task.best.has_value();
  }
  if (!worked) throw CheckFailed{};
}

void print_stats(const TaskSummary& task) {
  std::string statuses;
  for (const auto& [status, count] : task.statuses)
    statuses += fmt::format(" {} {}", count, status);
  fmt::print("{}: {} trials ({} lines measured again):{}\n", head_text(task.first.record),
             task.trials, task.measured_again, statuses);
  if (task.best) {
    const double ratio = ratio_of(task);
    fmt::print("  best {:.2f} us{}, within 95% of it after {} trials\n",
               median_us(task.best->record),
               ratio > 0 ? fmt::format(" ({:.2f}x the default)", ratio) : "", task.trials_to_95);
  }
  if (task.trials_per_s > 0) fmt::print("  {:.3g} trials a second\n", task.trials_per_s);
  for (const auto& [reason, count] : task.reasons) fmt::print("  {:5} x {}\n", count, reason);
}

Json stats_json(const TaskSummary& task) {
  Json line = head_of(task.first.record);
  line["trials"] = task.trials;
  line["measured_again"] = task.measured_again;
  line["statuses"] = task.statuses;
  line["reasons"] = task.reasons;
  line["best_us"] = task.best ? Json(median_us(task.best->record)) : Json();
  line["default_us"] = task.default_us > 0 ? Json(task.default_us) : Json();
  line["trials_to_95"] = task.trials_to_95 > 0 ? Json(task.trials_to_95) : Json();
  line["trials_per_s"] = task.trials_per_s > 0 ? Json(task.trials_per_s) : Json();
  return line;
}

void run_stats(const LogCommand& command) {
  for (const TaskSummary& task : summaries(command)) {
    if (command.json) {
      fmt::print("{}\n", stats_json(task).dump());
    } else {
      print_stats(task);
    }
  }
}

void run_merge(const LogCommand& command) {
  const MergeReport report = merge_logs(command.subject, command.out);
  print_warnings(report.warnings);
  if (command.json) {
    fmt::print("{}\n", Json{{"log", command.out},
                            {"lines", report.lines},
                            {"duplicates", report.duplicates},
                            {"kept_as_they_are", report.warnings.size()}}
                           .dump());
  } else if (!command.quiet) {
    fmt::print("{}: {} lines of {} logs, {} duplicates left out, {} kept that are no records\n",
               command.out, report.lines, command.subject.size(), report.duplicates,
               report.warnings.size());
  }
}

void print_check(const std::string& log, const LogCheck& check, const LogCommand& command) {
  for (const LogFinding& finding : check.wrong) {
    if (command.json) {
      fmt::print("{}\n", Json{{"where", finding.where.text()}, {"wrong", finding.text}}.dump());
    } else {
      fmt::print("{} - {}\n", finding.where.text(), finding.text);
    }
  }
  if (command.json) {
    fmt::print("{}\n", Json{{"log", log},
                            {"records", check.records},
                            {"replayed", check.replayed},
                            {"not_rebuilt", check.not_rebuilt},
                            {"newer", check.newer},
                            {"wrong", check.wrong.size()}}
                           .dump());
  } else if (!command.quiet) {
    fmt::print("{}: {} records, {} replayed, {} wrong", log, check.records, check.replayed,
               check.wrong.size());
    if (check.newer > 0) fmt::print("; {} line(s) of a newer version left alone", check.newer);
    if (check.not_rebuilt > 0)
      fmt::print("; {} of kernels of a network not replayed (--model FILE.onnx)",
                 check.not_rebuilt);
    fmt::print("\n");
  }
}

void run_check(const LogCommand& command) {
  bool wrong = false;
  for (const std::string& log : command.subject) {
    const LogCheck check = check_log(log, command.model, network_options(command));
    print_check(log, check, command);
    wrong |= !check.wrong.empty();
  }
  if (wrong) throw CheckFailed{};
}

/// One of the things that can be done with logs.
CLI::App* add_action(CLI::App& verb, LogCommand& command, const char* name, const char* what,
                     bool many) {
  CLI::App* action = verb.add_subcommand(name, what);
  CLI::Option* logs = action->add_option("log", command.subject, many ? "logs" : "the log");
  logs->required();
  if (!many) logs->expected(1);
  return action;
}

template <class Run>
void run_on(CLI::App& action, const std::shared_ptr<LogCommand>& command, Run run) {
  action.add_flag("--json", command->json, "one JSON object a line instead of text");
  action.add_flag("--quiet", command->quiet, "results alone");
  action.callback([command, run] { run(*command); });
}

void add_filters(CLI::App& action, const std::shared_ptr<LogCommand>& command) {
  action
      .add_option_function<std::string>(
          "--target",
          [command](const std::string& word) {
            command->target = word;
            command->any_target = false;
          },
          "only records for the features of: host, " + join(Target::known_names()))
      ->type_name("TEXT");
  action.add_option("--threads", command->threads, "only records of so many threads (0: any)");
}

}  // namespace

void add_log(CLI::App& app) {
  auto command = std::make_shared<LogCommand>();
  CLI::App* verb = app.add_subcommand("log", "logs of trials: merge, best, check, stats, train");
  verb->require_subcommand(1);

  CLI::App* merge = add_action(*verb, *command, "merge",
                               "one log of several: equal lines once, all else as it is", true);
  merge->add_option("-o,--output", command->out, "the new log; may be one of them")->required();
  run_on(*merge, command, run_merge);

  CLI::App* best =
      add_action(*verb, *command, "best",
                 "the best record of each task, and how much faster than its default", false);
  add_filters(*best, command);
  run_on(*best, command, run_best);

  CLI::App* check = add_action(
      *verb, *command, "check",
      "reads every line and replays each schedule; exit code 1 when something is wrong", true);
  check->add_option("--model", command->model, "the network that the log was tuned for");
  add_network(*check, *command);
  run_on(*check, command, run_check);

  CLI::App* stats = add_action(
      *verb, *command, "stats",
      "how trials ended and why, trials a second, trials to 95% of the final best", false);
  add_filters(*stats, command);
  run_on(*stats, command, run_stats);
  add_log_train(*verb);
}

}  // namespace tenon
