#include <tenon/compile/compile.h>
#include <tenon/graph/passes.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include "graph/onnx/operators.h"
#include "interp/interp.h"

namespace tenon {

namespace {

/// Above this a compiled kernel is quicker, its compilation included.
constexpr int64_t kMostInterpretedElements = 100'000;

/// The node alone as a program over inputs "x0", "x1", ...
Program node_program(const Graph& graph, const Node& node) {
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const ValueId id = node.inputs[k];
    if (id == kAbsent)
      inputs.emplace_back();
    else
      inputs.push_back(
          input(fmt::format("x{}", k), *graph.value(id).type, graph.value(id).shape()));
  }
  return make_program("node", {node_formula(node, inputs, "y")});
}

/// The program's arguments: the node's inputs by name, else `result`.
std::vector<Array> arguments_of(const Graph& graph, const Node& node, const Program& program,
                                const Array& result) {
  std::vector<Array> arguments;
  for (const Param& param : program.params) {
    arguments.push_back(result);
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (param.buffer->name == fmt::format("x{}", k))
        arguments.back() = *graph.value(node.inputs[k]).constant;
  }
  return arguments;
}

bool is_large(const std::vector<Array>& arguments) {
  int64_t elements = 0;
  for (const Array& array : arguments) elements += array.size();
  return elements > kMostInterpretedElements;
}

Array evaluate_node(const Graph& graph, const Node& node) {
  const Value& out = graph.value(node.outputs[0]);
  const Array result = Array::empty(*out.type, out.shape());
  const Program program = node_program(graph, node);
  const std::vector<Array> arguments = arguments_of(graph, node, program, result);
  if (is_large(arguments)) {
    compile(program, Target::host()).run(arguments, serial_pool());
    return result;
  }
  std::vector<HostBuffer> buffers;
  for (const Array& array : arguments) buffers.push_back({array.raw()});
  interpret(program, buffers, {.race_mode = false});
  return result;
}

}  // namespace

double node_iterations(const Graph& graph, const Node& node) {
  double sum = 0;
  walk(
      node_program(graph, node).body,
      [&](const Stmt& s) {
        const Stage* stage = s.as<Stage>();
        if (!stage) return true;
        double points = 1;
        for (const AxisBinding& binding : stage->axes)
          points *= static_cast<double>(as_int(binding.axis.extent).value_or(1));
        sum += points;
        return true;
      },
      [](const Expr&) { return false; });
  return sum;
}

Evaluator formula_evaluator() { return evaluate_node; }

}  // namespace tenon
