#include <tenon/autotvm/verify.h>
#include <tenon/driver/failure.h>
#include <tenon/driver/run.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "driver/require_device.h"

namespace tenon {
namespace {

std::string inputs_text(const OperatorCall& call) {
  std::vector<std::string> parts;
  for (const NamedShape& in : call.inputs)
    parts.push_back(fmt::format("{} {} {}", in.name, name(in.dtype), shape_text(in.shape)));
  return join(parts);
}

void check_names(const OperatorCall& call, const std::map<std::string, Array>& inputs) {
  std::set<std::string> known;
  for (const NamedShape& in : call.inputs) known.insert(in.name);
  for (const auto& [given, array] : inputs) {
    if (known.count(given)) continue;
    throw UserError(fmt::format("run {}: there is no input \"{}\"\n  inputs: {}", call.task.name,
                                given, inputs_text(call)));
  }
}

void check_positions(const OperatorCall& call, const NamedShape& in, const Array& array) {
  const auto range = call.task.input_ranges.find(in.name);
  if (range == call.task.input_ranges.end()) return;
  const auto [low, high] = range->second;
  const std::vector<double> values = array.to_doubles();
  for (size_t k = 0; k < values.size(); ++k) {
    if (values[k] >= static_cast<double>(low) && values[k] <= static_cast<double>(high)) continue;
    throw UserError(
        fmt::format("run {}: input {}: element {} is {}, no position of what it counts along\n"
                    "  positions: {} to {}",
                    call.task.name, in.name, k, values[k], low, high));
  }
}

/// In the shape that the kernel takes.
Array checked_input(const OperatorCall& call, const NamedShape& in, const Array& array,
                    const Shape& merged) {
  if (array.dtype() != in.dtype || array.shape() != in.shape) {
    throw UserError(fmt::format(
        "run {}: input {} is {} {}, not {} {}\n  try: another array, or other arguments (tenon "
        "kernels {})",
        call.task.name, in.name, name(in.dtype), shape_text(in.shape), name(array.dtype()),
        shape_text(array.shape()), call.task.name));
  }
  check_positions(call, in, array);
  return array.reshaped(merged);
}

std::vector<Array> make_arguments(const OperatorCall& call,
                                  const std::map<std::string, Array>& inputs, uint64_t seed,
                                  std::vector<std::string>& sampled) {
  check_names(call, inputs);
  std::vector<Array> arguments = sample_arguments(call.task, seed);
  TENON_CHECK(arguments.size() == call.inputs.size() + call.outputs.size(),
              "{}: merging dimensions changed the parameters", call.task.name);
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    const NamedShape& in = call.inputs[k];
    const auto given = inputs.find(in.name);
    if (given == inputs.end()) {
      sampled.push_back(in.name);
    } else {
      arguments[k] = checked_input(call, in, given->second, arguments[k].shape());
    }
  }
  return arguments;
}

void check_run(const OperatorCall& call, const NamedTrace& schedule, const RunOptions& options,
               const std::vector<Array>& arguments, ThreadPool& pool, OperatorRun& run) {
  Task reference = call.task;
  reference.target = Target::host();
  std::vector<Array> expected = arguments;
  for (size_t k = call.inputs.size(); k < expected.size(); ++k) expected[k] = arguments[k].copy();
  compile_or_keep(reference, Trace{}, options.threads).run(expected, pool);
  const Comparison comparison = compare_arguments(call.task, expected, arguments);
  run.check = comparison.passed ? CheckResult::passed : CheckResult::failed;
  if (comparison.passed) return;
  run.reason = fmt::format("{} under {}: wrong answer: {}", call.task.name, schedule.schedule,
                           comparison.reason);
  if (run.sampled.size() != call.inputs.size()) return;  // a seed does not make these inputs
  run.reason += fmt::format("; tenon replay {} reproduces it",
                            keep_failure(call.task, schedule.trace, TrialStatus::wrong_answer,
                                         comparison.reason, options.seed, options.threads));
}

}  // namespace

OperatorRun run_operator(const OperatorCall& call, const NamedTrace& schedule,
                         const std::map<std::string, Array>& inputs, const RunOptions& options) {
  OperatorRun run;
  const std::vector<Array> arguments = make_arguments(call, inputs, options.seed, run.sampled);
  require_device("run", call.task);
  ThreadPool pool(options.threads);
  const Kernel kernel = compile_or_keep(call.task, schedule.trace, options.threads);
  kernel.run(kernel.prepacked(arguments), pool);
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const NamedShape& out = call.outputs[k];
    run.outputs[out.name] = arguments[call.inputs.size() + k].reshaped(out.shape);
  }
  if (options.check) check_run(call, schedule, options, arguments, pool, run);
  return run;
}

Summary summarize(const Array& array) {
  constexpr int64_t kPart = 1 << 16;  // doubles at a time: arrays may be as large as the memory
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Summary out{kNone, kNone, 0, 0};
  for (int64_t at = 0; at < array.size(); at += kPart) {
    for (double v : array.view(at, {std::min(kPart, array.size() - at)}).to_doubles()) {
      if (std::isnan(v)) {
        ++out.nan;
        continue;
      }
      out.min = std::fmin(out.min, v);
      out.max = std::fmax(out.max, v);
      out.mean += v;
    }
  }
  const int64_t numbers = array.size() - out.nan;
  out.mean = numbers == 0 ? kNone : out.mean / static_cast<double>(numbers);
  return out;
}

}  // namespace tenon
