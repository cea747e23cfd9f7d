#include "graph/passes/rewrite.h"

#include <algorithm>

namespace tenon {

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  std::replace(graph.outputs.begin(), graph.outputs.end(), from, to);
}

bool is_graph_output(const Graph& graph, ValueId id) {
  return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
}

bool is_graph_input(const Graph& graph, ValueId id) {
  return std::find(graph.inputs.begin(), graph.inputs.end(), id) != graph.inputs.end();
}

void drop_nodes(Graph& graph, const std::vector<bool>& drop) {
  size_t kept = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (drop[i]) continue;
    if (kept != i) graph.nodes[kept] = std::move(graph.nodes[i]);
    ++kept;
  }
  graph.nodes.resize(kept);
}

}  // namespace tenon
