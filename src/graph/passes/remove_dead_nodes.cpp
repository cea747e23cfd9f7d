#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace tenon {

Graph remove_dead_nodes(Graph graph, const Evaluator&) {
  std::vector<bool> used(graph.values.size(), false), drop(graph.nodes.size(), false);
  const auto use = [&](ValueId id) {
    if (id != kAbsent) used[static_cast<size_t>(id)] = true;
  };
  for (ValueId id : graph.outputs) use(id);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    bool live = false;
    for (ValueId id : node.outputs) live = live || (id != kAbsent && used[static_cast<size_t>(id)]);
    drop[i] = !live;
    if (live)
      for (ValueId id : node.inputs) use(id);
  }
  drop_nodes(graph, drop);
  for (ValueId id : graph.inputs) use(id);
  for (const Node& node : graph.nodes)
    for (ValueId id : node.outputs) use(id);

  std::vector<ValueId> renumbered(graph.values.size(), kAbsent);
  std::vector<Value> kept;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!used[i]) continue;
    renumbered[i] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(graph.values[i]));
  }
  graph.values = std::move(kept);
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids)
      if (id != kAbsent) id = renumbered[static_cast<size_t>(id)];
  };
  renumber(graph.inputs);
  renumber(graph.outputs);
  for (Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  return graph;
}

}  // namespace tenon
