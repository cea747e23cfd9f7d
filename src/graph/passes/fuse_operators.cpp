#include <tenon/support/log.h>

#include "graph/onnx/operators.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace tenon {

Graph fuse_operators(Graph graph, const Evaluator& evaluate) {
  const GraphUses uses{producers(graph), consumers(graph)};
  std::vector<bool> drop(graph.nodes.size(), false);
  int count = 0;
  for (size_t i = 0; i < drop.size(); ++i) {
    const Operator& row = operator_of(graph.nodes[i]);
    if (row.fuse != nullptr && row.fuse(graph, uses, i, drop)) ++count;
  }
  drop_nodes(graph, drop);
  log_line(2, "graph/fuse_operators", fmt::format("{} operators made of several", count));
  return remove_dead_nodes(std::move(graph), evaluate);
}

}  // namespace tenon
