#include <tenon/driver/driver.h>
#include <tenon/driver/run.h>
#include <tenon/runtime/npy.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>
#include <tenon/support/text.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/options.h"
#include "cli/progress_line.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

struct RunCommand : CommandOptions {
  std::vector<std::string> inputs, outputs;
  std::string output_dir;
  std::optional<uint64_t> seed;
  bool check = false;
};

std::map<std::string, Array> read_inputs(const RunCommand& command) {
  std::map<std::string, Array> inputs;
  for (const std::string& text : command.inputs) {
    auto [input_name, path] = split_assignment(text, "--input x=x.npy");
    if (!inputs.emplace(input_name, load_npy(path)).second) {
      throw UserError(fmt::format("--input {} is given twice", input_name));
    }
  }
  return inputs;
}

// Any name of an output as a file name: what a file system may dislike becomes '_', a number keeps
// names apart.
std::string file_name(const std::string& output_name, std::set<std::string>& taken) {
  std::string stem;
  for (char c : output_name) {
    stem +=
        std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ? c : '_';
  }
  if (stem.empty() || stem[0] == '.') stem = "output" + stem;
  std::string name = stem + ".npy";
  for (int k = 2; !taken.insert(name).second; ++k) name = fmt::format("{}.{}.npy", stem, k);
  return name;
}

void write_folder(const std::string& folder, const std::map<std::string, Array>& outputs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("--output-dir {}: cannot be made: {}", folder, error.message()));
  nlohmann::ordered_json index;
  std::set<std::string> taken = {"index.json"};
  for (const auto& [output_name, array] : outputs) {
    const std::string file = file_name(output_name, taken);
    save_npy((std::filesystem::path(folder) / file).string(), array);
    index[output_name] = file;
  }
  const std::string index_path = (std::filesystem::path(folder) / "index.json").string();
  if (auto failure = write_file(index_path, index.dump(2) + "\n"))
    throw UserError(failure->message);
}

void check_outputs(const RunCommand& command, const std::vector<NamedShape>& outputs) {
  std::vector<std::string> known;
  for (const NamedShape& output : outputs) known.push_back(output.name);
  for (const std::string& text : command.outputs) {
    const std::string wanted = split_assignment(text, "--output y=y.npy").first;
    if (std::find(known.begin(), known.end(), wanted) != known.end()) continue;
    throw UserError(fmt::format("--output {}: there is no output \"{}\"\n  outputs: {}", text,
                                wanted, join(known)));
  }
}

void write_named(const RunCommand& command, const std::map<std::string, Array>& outputs) {
  for (const std::string& text : command.outputs) {
    auto [output_name, path] = split_assignment(text, "--output y=y.npy");
    save_npy(path, outputs.at(output_name));
  }
}

// "schedules of 21 kernels: 3 default, 18 from tuning_logs/cls.jsonl"
std::string schedules_text(const Network& network) {
  std::map<std::string, int> counts;
  for (const GroupKernel& kernel : network.kernels()) {
    const size_t colon = kernel.schedule.rfind(':');
    ++counts[colon == std::string::npos ? kernel.schedule
                                        : "from " + kernel.schedule.substr(0, colon)];
  }
  std::vector<std::string> parts;
  for (const auto& [where, count] : counts) parts.push_back(fmt::format("{} {}", count, where));
  return fmt::format("schedules of {} kernels: {}", network.kernels().size(), join(parts));
}

// JSON has no NaN.
nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

// Files first, then one line an output.
void give_outputs(const RunCommand& command, const std::map<std::string, Array>& outputs) {
  if (!command.output_dir.empty()) write_folder(command.output_dir, outputs);
  write_named(command, outputs);
  if (command.quiet && !command.json) return;
  for (const auto& [output_name, array] : outputs) {
    const Summary s = summarize(array);
    if (command.json) {
      const nlohmann::ordered_json line = {
          {"output", output_name}, {"type", name(array.dtype())}, {"shape", array.shape()},
          {"min", number(s.min)},  {"max", number(s.max)},        {"mean", number(s.mean)},
          {"nan", s.nan}};
      fmt::print("{}\n", line.dump());
      continue;
    }
    std::string numbers =
        array.size() == s.nan
            ? ""
            : fmt::format(": min {:.6g}, max {:.6g}, mean {:.6g}", s.min, s.max, s.mean);
    if (s.nan > 0) numbers += fmt::format("{} {} NaN", numbers.empty() ? ":" : ",", s.nan);
    fmt::print("{}: {} {}{}\n", output_name, name(array.dtype()), shape_text(array.shape()),
               numbers);
  }
}

void refuse_operator_options(const RunCommand& command) {
  if (command.check)
    throw UserError(fmt::format(
        "run --check compares an operator with its unscheduled formula; {} is a network\n"
        "  try: tenon bench {}, which checks each of its kernels",
        command.subject[0], command.subject[0]));
  if (command.seed)
    throw UserError(
        "run --seed makes the inputs of an operator; a network takes all of them by --input");
}

void run_network(const RunCommand& command) {
  refuse_operator_options(command);
  const std::map<std::string, Array> inputs = read_inputs(command);
  NetworkOptions options = network_options(command);
  // What is not bound by --shape is bound by the arrays themselves.
  for (const auto& [input_name, array] : inputs)
    options.bindings.shapes.emplace(input_name, array.shape());
  Network network = Network::load(command.subject[0], options);
  network.check_inputs(inputs);
  check_outputs(command, network.outputs());
  network.select(open_store(command), check_adapted(options.threads));
  ProgressLine progress("compiling: kernel", command.quiet);
  network.compile(progress.callback());
  if (!command.quiet) fmt::print(stderr, "tenon: {}\n", schedules_text(network));
  give_outputs(command, network.run(inputs));
}

void print_call(const OperatorCall& call, const NamedTrace& schedule, const OperatorRun& run,
                uint64_t seed) {
  fmt::print(stderr, "tenon: schedule of {}: {}\n", call.task.name, schedule.schedule);
  if (run.sampled.empty()) return;
  fmt::print(stderr, "tenon: random inputs of seed {}: {} (--input {}=FILE.npy gives your own)\n",
             seed, join(run.sampled), run.sampled[0]);
}

// The last line of --json.
std::string call_json(const RunCommand& command, const OperatorCall& call,
                      const NamedTrace& schedule, const OperatorRun& run,
                      const RunOptions& options) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::object();
  for (const std::string& text : command.inputs) {
    const auto [input_name, path] = split_assignment(text, "--input A=A.npy");
    inputs[input_name] = path;
  }
  for (const std::string& sampled : run.sampled) inputs[sampled] = "random";
  const nlohmann::ordered_json line = {{"kernel", call.task.name},
                                       {"args", nlohmann::ordered_json::parse(call.task.args)},
                                       {"target", call.task.target.name},
                                       {"threads", options.threads},
                                       {"schedule", schedule.schedule},
                                       {"inputs", inputs},
                                       {"seed", options.seed},
                                       {"check", name(run.check)}};
  return line.dump();
}

void run_by_name(const RunCommand& command) {
  const OperatorCall call = operator_call(command.subject, command.parsed_target());
  check_outputs(command, call.outputs);
  const std::map<std::string, Array> inputs = read_inputs(command);
  const RunOptions options{command.parsed_threads(), command.seed.value_or(0), command.check};
  const NamedTrace schedule = schedules_for(call.task, command).back();
  const OperatorRun run = run_operator(call, schedule, inputs, options);
  if (!command.quiet) print_call(call, schedule, run, options.seed);
  if (run.check == CheckResult::failed) {
    fmt::print(stderr, "tenon: {}\n", run.reason);
  }
  give_outputs(command, run.outputs);
  if (command.json) {
    fmt::print("{}\n", call_json(command, call, schedule, run, options));
  } else if (command.check && !command.quiet) {
    fmt::print("check {}\n", name(run.check));
  }
  if (run.check == CheckResult::failed) throw CheckFailed{};
}

void run_subject(const RunCommand& command) {
  if (is_model(command.subject)) return run_network(command);
  refuse_network_options(command);
  run_by_name(command);
}

}  // namespace

void add_run(CLI::App& app) {
  auto command = std::make_shared<RunCommand>();
  CLI::App* verb =
      app.add_subcommand("run", "run a network, or an operator by name, on .npy inputs");
  verb->add_option("subject", command->subject,
                   "model.onnx, or an operator and its arguments: matmul m=64 n=33 k=17")
      ->required();
  verb->add_option("--input", command->inputs,
                   "NAME=FILE.npy, once for each input; an operator's other inputs are random")
      ->allow_extra_args(false);
  verb->add_option("--output", command->outputs, "NAME=FILE.npy: one output to a file")
      ->allow_extra_args(false);
  verb->add_option("--output-dir", command->output_dir,
                   "every output as .npy, with index.json (name -> file)");
  verb->add_flag("--check", command->check,
                 "an operator: compare with its unscheduled formula on this machine's processor");
  verb->add_option("--seed", command->seed, "an operator: of its random inputs (default 0)");
  add_network(*verb, *command);
  verb->add_option("--log", command->log, "file of records to look in first");
  add_common(*verb, *command);
  verb->callback([command] { run_subject(*command); });
}

}  // namespace tenon
