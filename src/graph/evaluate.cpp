#include <tenon/graph/passes.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include "graph/onnx/operators.h"
#include "interp/interp.h"

namespace tenon {

namespace {

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

Array interpret_node(const Graph& graph, const Node& node) {
  const Value& out = graph.value(node.outputs[0]);
  Array result = Array::empty(*out.type, out.shape());
  const Program program = node_program(graph, node);
  std::vector<HostBuffer> arguments;
  for (const Param& param : program.params) {
    void* data = result.raw();
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (param.buffer->name == fmt::format("x{}", k))
        data = graph.value(node.inputs[k]).constant->raw();
    arguments.push_back({data});
  }
  interpret(program, arguments, {.race_mode = false});
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

Evaluator formula_evaluator() { return interpret_node; }

}  // namespace tenon
