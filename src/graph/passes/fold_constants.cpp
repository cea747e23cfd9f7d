#include <algorithm>

#include "graph/onnx/operators.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace tenon {

namespace {

/// A result may be this much larger than what it comes from: an expanded scalar stays a formula.
constexpr int64_t kAlwaysFoldedElements = 64 * 1024, kMostGrowth = 2;

/// Evaluating may take so many iterations, or so many per element read and made: enough for what
/// exporters leave to fold, and no window of 2^31 over a constant.
constexpr double kAlwaysFoldedIterations = 1e6, kMostIterations = 4;

bool worth_folding(const Graph& graph, const Node& node) {
  int64_t read = 0;
  for (ValueId id : node.inputs) {
    if (id == kAbsent) continue;
    if (!graph.is_constant(id)) return false;
    read += graph.value(id).constant->size();
  }
  const int64_t made = element_count(graph.value(node.outputs[0]).shape());
  if (made > std::max(kAlwaysFoldedElements, kMostGrowth * read)) return false;
  const double iterations = kMostIterations * static_cast<double>(made + read);
  return node_iterations(graph, node) <= std::max(kAlwaysFoldedIterations, iterations);
}

}  // namespace

Graph fold_constants(Graph graph, const Evaluator& evaluate) {
  std::vector<bool> drop(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!worth_folding(graph, node)) continue;
    Value& out = graph.value(node.outputs[0]);
    if (operator_of(node).kind == OperatorKind::view)
      out.constant = graph.value(node.inputs[0]).constant->reshaped(out.shape());
    else
      out.constant = evaluate(graph, node);
    drop[i] = true;
  }
  drop_nodes(graph, drop);
  return graph;
}

}  // namespace tenon
