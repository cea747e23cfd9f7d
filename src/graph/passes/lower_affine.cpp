#include "graph/onnx/operators.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace tenon {

namespace {

constexpr int kChannelAxis = 1;
constexpr size_t kFewestInputs = 3;  // maps of two inputs are as simple as what they would become

}  // namespace

Graph lower_affine(Graph graph, const Evaluator&) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node node = graph.nodes[i];
    const Operator& row = operator_of(node);
    if (!row.affine || node.inputs.size() < kFewestInputs) continue;
    const std::vector<int64_t> shape = graph.value(node.outputs[0]).shape();
    const auto map = row.affine(graph, node, kChannelAxis, shape[kChannelAxis]);
    if (!map) continue;
    const size_t before = graph.nodes.size();
    const ValueId out =
        insert_affine(graph, i + 1, map->data, kChannelAxis, map->scale, map->shift);
    if (out == map->data)
      continue;  // the identity: remove_identities does not know it, keep the node
    const size_t added = graph.nodes.size() - before;
    graph.nodes[i + added].outputs[0] = node.outputs[0];
    graph.nodes.erase(graph.nodes.begin() + static_cast<ptrdiff_t>(i));
    i += added - 1;
  }
  return graph;
}

}  // namespace tenon
