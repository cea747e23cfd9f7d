#include "graph/onnx/blocked.h"
#include "graph/onnx/operators.h"
#include "graph/passes/passes.h"

namespace tenon {

Graph use_winograd(Graph graph) {
  std::vector<Node> nodes;
  const std::vector<Node> before = std::move(graph.nodes);
  for (const Node& node : before) {
    const Operator& row = operator_of(node);
    const bool known = node.inputs.size() == 2 && graph.is_constant(node.inputs[1]);
    auto form = row.winograd && known ? row.winograd(node, input_infos(graph, node)) : std::nullopt;
    if (!form) {
      nodes.push_back(node);
      continue;
    }
    const std::string name = graph.value(node.inputs[1]).name + ".winograd";
    form->weights.name = name;
    const ValueId weights =
        append_node(graph, nodes, std::move(form->weights), {node.inputs[1]}, name);
    form->node.inputs = {node.inputs[0], weights};
    form->node.outputs = node.outputs;
    nodes.push_back(std::move(form->node));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace tenon
