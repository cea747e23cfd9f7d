#pragma once
#include <tenon/graph/graph.h>

#include <string>

namespace tenon {

/// All readers of `from`, graph outputs included, read `to` instead.
void replace_uses(Graph& graph, ValueId from, ValueId to);

bool is_graph_output(const Graph& graph, ValueId id);
bool is_graph_input(const Graph& graph, ValueId id);

/// Drops the nodes marked true; their output values stay until remove_dead_nodes.
void drop_nodes(Graph& graph, const std::vector<bool>& drop);

/// " axis=1 pads=[0,0]": the attributes in the order of their names, exact.
std::string attributes_text(const Node& node);

}  // namespace tenon
