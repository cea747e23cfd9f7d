#include <tenon/driver/driver.h>
#include <tenon/runtime/npy.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>
#include <tenon/support/text.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/options.h"
#include "cli/progress_line.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

struct RunCommand : CommandOptions {
  std::vector<std::string> inputs, outputs;
  std::string output_dir;
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

void check_outputs(const RunCommand& command, const Network& network) {
  std::vector<std::string> known;
  for (const NamedShape& output : network.outputs()) known.push_back(output.name);
  for (const std::string& text : command.outputs) {
    const std::string wanted = split_assignment(text, "--output y=y.npy").first;
    if (std::find(known.begin(), known.end(), wanted) != known.end()) continue;
    throw UserError(fmt::format("--output {}: the network has no output \"{}\"\n  outputs: {}",
                                text, wanted, join(known)));
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

void run_network(const RunCommand& command) {
  if (!is_model(command.subject)) {
    throw UserError(
        fmt::format("run: \"{}\" is not an .onnx file\n  try: tenon bench {} for an operator",
                    command.subject[0], command.subject[0]));
  }
  const std::map<std::string, Array> inputs = read_inputs(command);
  NetworkOptions options = network_options(command);
  // What is not bound by --shape is bound by the arrays themselves.
  for (const auto& [input_name, array] : inputs)
    options.bindings.shapes.emplace(input_name, array.shape());
  Network network = Network::load(command.subject[0], options);
  network.check_inputs(inputs);
  check_outputs(command, network);
  RecordPlaces places;
  places.log = command.log;
  const RecordStore store(places);
  print_warnings(store.warnings());
  network.select(store, check_adapted(options.threads));
  ProgressLine progress("compiling: kernel", command.quiet);
  network.compile(progress.callback());
  if (!command.quiet) fmt::print(stderr, "tenon: {}\n", schedules_text(network));
  const std::map<std::string, Array> outputs = network.run(inputs);
  if (!command.output_dir.empty()) write_folder(command.output_dir, outputs);
  write_named(command, outputs);
  if (command.quiet) return;
  for (const auto& [output_name, array] : outputs) {
    if (command.json) {
      const nlohmann::ordered_json line = {
          {"output", output_name}, {"type", name(array.dtype())}, {"shape", array.shape()}};
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{}: {} {}\n", output_name, name(array.dtype()), shape_text(array.shape()));
    }
  }
}

}  // namespace

void add_run(CLI::App& app) {
  auto command = std::make_shared<RunCommand>();
  CLI::App* verb = app.add_subcommand("run", "run a network on .npy inputs");
  verb->add_option("model", command->subject, "model.onnx")->required()->expected(1);
  verb->add_option("--input", command->inputs, "NAME=FILE.npy, once for each input");
  verb->add_option("--output", command->outputs, "NAME=FILE.npy: one output to a file");
  verb->add_option("--output-dir", command->output_dir,
                   "every output as .npy, with index.json (name -> file)");
  add_network(*verb, *command);
  verb->add_option("--log", command->log, "file of records to look in first");
  add_common(*verb, *command);
  verb->callback([command] { run_network(*command); });
}

}  // namespace tenon
