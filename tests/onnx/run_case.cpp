#include "run_case.h"

#include <tenon/compile/compile.h>
#include <tenon/graph/groups.h>
#include <tenon/graph/memory_plan.h>
#include <tenon/graph/onnx.h>
#include <tenon/graph/passes.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "interp/interp.h"
#include "kernels/templates.h"

namespace tenon {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBoundElements = 64;

std::vector<Array> load_arrays(const fs::path& folder, const std::string& stem) {
  std::vector<Array> arrays;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", stem, i);
    if (!fs::exists(path)) return arrays;
    arrays.push_back(load_tensor_proto(path));
  }
}

/// Parameters keep their bytes when dimensions are merged.
void run_compiled(const GroupFormula& formula, const std::vector<Array>& arguments) {
  const Program program = merge_dimensions(formula.program);
  const Target target = Target::host();
  const Task task("group", program, templates_for(program, target), target);
  const Kernel kernel = compile(task, default_schedule(task).trace());
  std::vector<void*> pointers;
  for (const Array& array : arguments) pointers.push_back(array.raw());
  Workspace workspace;
  call_unchecked(kernel.module(), pointers.data(), nullptr, serial_pool(), workspace);
}

void run_interpreted(const GroupFormula& formula, const std::vector<Array>& arguments) {
  std::vector<HostBuffer> buffers;
  for (const Array& array : arguments) buffers.push_back({array.raw()});
  interpret(formula.program, buffers);
}

/// Runs the fused groups one by one, each value in an array of its own.
std::vector<Array> run_groups(const Graph& graph, const std::map<std::string, Array>& inputs,
                              Engine engine) {
  std::vector<Array> arrays(graph.values.size());
  for (size_t i = 0; i < arrays.size(); ++i)
    if (graph.values[i].constant) arrays[i] = *graph.values[i].constant;
  for (ValueId id : graph.inputs) arrays[static_cast<size_t>(id)] = inputs.at(graph.value(id).name);
  const std::vector<Group> groups = group_nodes(graph);
  const MemoryPlan plan = plan_memory(graph, groups);
  const auto array_of = [&](ValueId id) {
    const ValueId root = plan.homes[static_cast<size_t>(id)].root;
    return arrays[static_cast<size_t>(root)].reshaped(graph.value(id).shape());
  };
  for (const Group& group : groups) {
    const GroupFormula formula = group_formula(graph, group);
    const Value& out = graph.value(group.output);
    arrays[static_cast<size_t>(group.output)] = Array::empty(*out.type, out.shape());
    std::vector<Array> arguments;
    for (ValueId id : formula.arguments) arguments.push_back(array_of(id));
    engine == Engine::kernels ? run_compiled(formula, arguments)
                              : run_interpreted(formula, arguments);
  }
  std::vector<Array> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(array_of(id));
  return outputs;
}

std::string difference(const Array& ours, const Array& expected, double rtol, double atol) {
  if (ours.dtype() != expected.dtype())
    return fmt::format("type {} instead of {}", name(ours.dtype()), name(expected.dtype()));
  if (ours.shape() != expected.shape())
    return fmt::format("shape {} instead of {}", shape_text(ours.shape()),
                       shape_text(expected.shape()));
  const std::vector<double> a = ours.to_doubles(), b = expected.to_doubles();
  const bool exact = !is_float(ours.dtype());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;
    if (exact || !(std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i])))
      return fmt::format("element {} is {} instead of {}", i, a[i], b[i]);
  }
  return "";
}

bool is_small_and_whole(const Array& array) {
  return !is_float(array.dtype()) && array.size() <= kMostBoundElements;
}

bool wants_values(const std::string& message) {
  return message.find("only a run would know") != std::string::npos ||
         message.find("must be constants") != std::string::npos;
}

Graph prepare(const Graph& model, const std::map<std::string, Array>& inputs, bool bind_values) {
  InputBindings bindings;
  for (const auto& [name, array] : inputs) {
    const bool scalar = bind_values && array.rank() == 0;
    if (scalar || (bind_values && is_small_and_whole(array)))
      bindings.values[name] = array;
    else
      bindings.shapes[name] = array.shape();
  }
  const Evaluator evaluate = formula_evaluator();
  const Graph resolved = resolve_operators(bind_shapes(model, bindings), evaluate);
  verify_graph(resolved);
  return simplify_graph(resolved, evaluate, {.verify = true});
}

CaseResult run_data_set(const Graph& model, const fs::path& data, double rtol, double atol,
                        Engine engine) {
  std::map<std::string, Array> inputs;
  const std::vector<Array> given = load_arrays(data, "input"),
                           expected = load_arrays(data, "output");
  if (given.size() != model.inputs.size()) return {Outcome::wrong, "another number of inputs"};
  for (size_t i = 0; i < given.size(); ++i) inputs[model.value(model.inputs[i]).name] = given[i];
  Graph graph;
  try {
    graph = prepare(model, inputs, false);
  } catch (const UserError& error) {
    if (!wants_values(error.what())) throw;
    graph = prepare(model, inputs, true);
  }
  const std::vector<Array> ours = run_groups(graph, inputs, engine);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string reason = difference(ours.at(i), expected[i], rtol, atol);
    if (!reason.empty()) return {Outcome::wrong, fmt::format("output {}: {}", i, reason)};
  }
  return {Outcome::passed, ""};
}

}  // namespace

CaseResult run_case(const fs::path& folder, double rtol, double atol, Engine engine) {
  try {
    const Graph model = load_onnx(folder / "model.onnx");
    for (int k = 0; fs::exists(folder / fmt::format("test_data_set_{}", k)); ++k) {
      const CaseResult result =
          run_data_set(model, folder / fmt::format("test_data_set_{}", k), rtol, atol, engine);
      if (result.outcome != Outcome::passed) return result;
    }
    return {Outcome::passed, ""};
  } catch (const UserError& error) {
    return {Outcome::refused, error.what()};
  } catch (const std::exception& error) {
    return {Outcome::crashed, error.what()};
  }
}

fs::path onnx_cases() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = cache ? fs::path(cache) : fs::path(home ? home : "/") / ".cache";
  return base / "tenon" / "onnx-1.23.2";
}

}  // namespace tenon
