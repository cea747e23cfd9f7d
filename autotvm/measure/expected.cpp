#include "autotvm/measure/expected.h"

#include <interp/interp.h>
#include <interp/points.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>
#include <tenon/support/rng.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon {
namespace {

constexpr double kQuickPoints = 5e7;  // statements that plain loops run in a tenth of a second
constexpr size_t kMostElements = 512;
constexpr double kLeastStatements = 2e4;  // that the interpreter runs of a small task in any case

/// The arguments as they lie in the shared memory.
std::vector<Array> arguments_in(const RunnerSetup& setup, const SharedMemory& memory) {
  const std::vector<int64_t> offsets = argument_offsets(setup.parameters);
  std::vector<Array> out;
  for (const Parameter& p : setup.parameters)
    out.push_back(
        Array::wrap(memory.data() + offsets[out.size()], p.dtype, constant_shape(p), nullptr));
  return out;
}

/// The one kernel that says what is right.
struct Reference {
  std::string name;
  Program program;
};

Reference unscheduled(const Task& task) { return {"the unscheduled kernel", task.program}; }

Reference generic(const Task& task) {
  Schedule s(task.program, task.target);
  Knobs knobs(survey(generic_template, task.program, task.target).default_point());
  generic_template(s, knobs);
  return {"the generic schedule's kernel", s.program()};
}

[[noreturn]] void fail(const Task& task, const Reference& reference, const std::string& why) {
  throw InternalError(
      fmt::format("{}: {} {}\n{}", task.name, reference.name, why, print(reference.program)));
}

/// Runs it into the shared memory; false when stopped.
bool run(const Task& task, const Reference& reference, const RunnerSetup& setup,
         CompilerPool& compilers, const ExpectedOptions& options) {
  const std::vector<Built> built = compilers.build({&reference.program});
  if (built.empty()) return false;
  if (built.front().status != TrialStatus::ok)
    fail(task, reference, "does not compile: " + built.front().reason);
  RunnerSetup writer = setup;
  writer.writes_expected = true;
  RunnerProcess process(options.runner_program, writer, options.stop);
  RunnerReply reply = process.load(0, built.front().object);
  if (reply.status == TrialStatus::ok && !reply.stopped)
    reply = process.make_expected(0, options.timeout_s);
  if (reply.stopped) return false;
  if (reply.status == TrialStatus::run_timeout) {
    throw UserError(
        fmt::format("{}: {}, which says what is right, {}\n  try: more time, or a "
                    "smaller task",
                    task.name, reference.name, reply.reason));
  }
  if (reply.status != TrialStatus::ok) fail(task, reference, "does not run: " + reply.reason);
  return true;
}

void check_all(const Task& task, const Reference& reference, const RunnerSetup& setup,
               const std::vector<Array>& arguments) {
  std::vector<Array> computed = arguments;
  std::vector<HostBuffer> buffers;
  for (size_t k = 0; k < computed.size(); ++k) {
    const Parameter& p = setup.parameters[k];
    if (p.is_output) computed[k] = Array::empty(p.dtype, constant_shape(p));
    buffers.push_back({computed[k].raw()});
  }
  InterpOptions options;
  options.race_mode = false;  // unscheduled: nothing runs in parallel
  options.dims = task.sample_sizes;
  interpret(task.program, buffers, options);
  for (size_t k = 0; k < computed.size(); ++k) {
    const Parameter& p = setup.parameters[k];
    if (!p.is_output) continue;
    const Comparison c = compare_output(p.name, computed[k], arguments[k], setup.tolerance);
    if (!c.passed) fail(task, reference, "disagrees with the interpreter: " + c.reason);
  }
}

/// Numbers of elements: the corners, then some whose every index is first, last or a random one.
std::vector<int64_t> elements_to_check(const Shape& shape, uint64_t seed) {
  Rng rng(seed);
  std::vector<int64_t> out;
  const size_t corners = size_t{1} << std::min<size_t>(shape.size(), 6);
  while (out.size() < kMostElements) {
    int64_t element = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t last = shape[d] - 1;
      int64_t index = rng.between(0, last);
      if (out.size() < corners) {
        index = (out.size() >> std::min<size_t>(d, 5)) % 2 ? last : 0;
      } else if (rng.below(4) == 0) {
        index = rng.below(2) ? last : 0;
      }
      element = element * shape[d] + index;
    }
    out.push_back(element);
  }
  return out;
}

Array element_of(const Array& a, int64_t element) { return a.view(element, {1}); }

/// False when not one element of some output could be evaluated.
bool check_points(const Task& task, const Reference& reference, const RunnerSetup& setup,
                  const std::vector<Array>& arguments, const ExpectedOptions& options) {
  std::vector<HostBuffer> buffers;
  double outputs = 0;
  for (size_t k = 0; k < arguments.size(); ++k) {
    buffers.push_back({arguments[k].raw()});
    outputs += setup.parameters[k].is_output ? 1 : 0;
  }
  const bool small = points_of(sample_program(task)) <= options.oracle_limit;
  bool complete = true;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Parameter& p = setup.parameters[k];
    if (!p.is_output || arguments[k].size() == 0) continue;
    PointOptions points;
    points.dims = task.sample_sizes;
    const double most = std::max(options.whole_limit, kLeastStatements);
    points.max_steps = static_cast<int64_t>((small ? most : options.oracle_limit) / outputs);
    PointOracle oracle(task.program, buffers, points);
    const double rms = output_rms(arguments[k]);
    int64_t looked_at = 0;
    for (int64_t element : elements_to_check(arguments[k].shape(), options.seed)) {
      if (oracle.steps() >= points.max_steps) break;
      const std::optional<double> value = oracle.at(k, element);
      if (!value) continue;
      ++looked_at;
      const Comparison c = compare_output(p.name, from_doubles(p.dtype, {1}, {*value}),
                                          element_of(arguments[k], element), setup.tolerance, rms);
      if (!c.passed)
        fail(task, reference,
             fmt::format("disagrees with the interpreter at element {}: {}", element, c.reason));
    }
    complete = complete && looked_at > 0;
  }
  return complete;
}

}  // namespace

void write_inputs(const Task& task, const RunnerSetup& setup, uint64_t seed, SharedMemory& memory) {
  const std::vector<Array> arguments = arguments_in(setup, memory);
  for (size_t k = 0; k < arguments.size(); ++k) {
    // Positions count parameters, inputs first, as in sample_arguments().
    if (setup.parameters[k].is_output || arguments[k].bytes() == 0) continue;
    const Array input = task_input(setup.parameters[k], k, seed, task.input_ranges);
    std::memcpy(arguments[k].raw(), input.raw(), static_cast<size_t>(input.bytes()));
  }
}

bool compute_expected(const Task& task, const RunnerSetup& setup, const SharedMemory& memory,
                      CompilerPool& compilers, const ExpectedOptions& options) {
  const double points = points_of(sample_program(task));
  const bool plain = points <= kQuickPoints;
  const Reference reference = plain ? unscheduled(task) : generic(task);
  if (!run(task, reference, setup, compilers, options)) return false;
  const std::vector<Array> arguments = arguments_in(setup, memory);
  if (points <= std::min(options.whole_limit, options.oracle_limit)) {
    check_all(task, reference, setup, arguments);
  } else if (!check_points(task, reference, setup, arguments, options) && !plain) {
    return run(task, unscheduled(task), setup, compilers, options);
  }
  return true;
}

}  // namespace tenon
