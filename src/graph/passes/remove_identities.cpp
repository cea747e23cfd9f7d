#include <algorithm>

#include "graph/onnx/operators.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace tenon {

namespace {

bool is_identity(const Graph& graph, const Node& node) {
  const Operator& row = operator_of(node);
  return row.identity != nullptr && row.identity(node, input_infos(graph, node));
}

/// Makes the producer of `in` write `out`, so that a graph output keeps its name. False when `in`
/// has no producer of its own to do so.
bool produce_directly(Graph& graph, ValueId in, ValueId out) {
  if (is_graph_output(graph, in)) return false;
  for (Node& node : graph.nodes)
    for (ValueId& id : node.outputs)
      if (id == in) {
        replace_uses(graph, in, out);
        id = out;
        return true;
      }
  return false;
}

}  // namespace

Graph remove_identities(Graph graph, const Evaluator&) {
  std::vector<bool> drop(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_identity(graph, graph.nodes[i])) continue;
    const ValueId in = graph.nodes[i].inputs[0], out = graph.nodes[i].outputs[0];
    if (!is_graph_output(graph, out)) {
      replace_uses(graph, out, in);
      drop[i] = true;
    } else {
      graph.nodes[i].outputs[0] = kAbsent;  // `out` gets its new producer
      drop[i] = produce_directly(graph, in, out);
      if (!drop[i]) graph.nodes[i].outputs[0] = out;
    }
  }
  drop_nodes(graph, drop);
  return graph;
}

}  // namespace tenon
