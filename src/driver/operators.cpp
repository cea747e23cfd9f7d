#include <tenon/autotvm/failure.h>
#include <tenon/driver/driver.h>
#include <tenon/driver/run.h>
#include <tenon/ir/ops.h>
#include <tenon/support/error.h>

#include <nlohmann/json.hpp>

#include "kernels/table.h"
#include "kernels/templates.h"

namespace tenon {
namespace {

// {"m":64,"type":"f32"} -> {"matmul", "m=64", "type=f32"}
std::vector<std::string> words_of(const Record& record) {
  std::vector<std::string> words = {record.task};
  const auto args = nlohmann::ordered_json::parse(record.args);
  for (const auto& [name, value] : args.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (!text.empty()) words.push_back(name + "=" + text);
  }
  return words;
}

bool is_operator(const std::string& name) {
  for (const KernelEntry& entry : kernel_table()) {
    if (entry.name == name) return true;
  }
  return false;
}

}  // namespace

OperatorCall operator_call(const std::vector<std::string>& words, const Target& target) {
  const KernelEntry& entry = find_kernel(words.at(0));
  const KernelArgs args = parse_kernel_args(entry, {words.begin() + 1, words.end()});
  const Program formula = make_program(entry.name, entry.build(args));
  const Program program = merge_dimensions(formula);
  OperatorCall call{Task(entry.name, program, templates_for(program, target), target), {}, {}};
  call.task.args = args.to_json();
  call.task.flops = entry.flops(args);
  if (entry.ranges) call.task.input_ranges = entry.ranges(args);
  for (const Param& p : formula.params) {
    auto& list = p.role == ParamRole::output ? call.outputs : call.inputs;
    list.push_back({p.buffer->name, p.buffer->dtype, *const_shape(p.buffer->shape)});
  }
  return call;
}

Task operator_task(const std::vector<std::string>& words, const Target& target) {
  return operator_call(words, target).task;
}

Task task_of_record(const Record& record, const std::filesystem::path& model,
                    const NetworkOptions& options) {
  if (std::optional<Task> failed = task_of_failure(record, options.target)) return *failed;
  if (!model.empty()) {
    const Network network = Network::load(model, options);
    for (const GroupKernel& kernel : network.kernels()) {
      if (program_hash(kernel.task.program) == record.program) return kernel.task;
    }
    throw UserError(
        fmt::format("no kernel of {} has the formula of this record ({}, program {})\n  try: the "
                    "--shape it was tuned with",
                    model.string(), record.task, record.program));
  }
  if (!is_operator(record.task)) {
    const auto args = nlohmann::ordered_json::parse(record.args);
    const auto word = [&](const char* key, const std::string& otherwise) {
      return args.contains(key) && args[key].is_string() ? args[key].get<std::string>() : otherwise;
    };
    const std::string model = word("model", "model"), kernel = word("kernel", "");
    throw UserError(fmt::format(
        "\"{}\" is a kernel of a network{}, not an operator by name\n"
        "  try: --model {}.onnx, with the --shape it was tuned with",
        record.task, kernel.empty() ? "" : fmt::format(" ({} of {})", kernel, model), model));
  }
  Task task = operator_task(words_of(record), options.target);
  if (program_hash(task.program) != record.program) {
    throw UserError(fmt::format(
        "the formula of {} is no longer the one that was measured: program {} now, {} in the "
        "record\n  try: tenon tune again",
        record.task, program_hash(task.program), record.program));
  }
  return task;
}

}  // namespace tenon
