#include <tenon/support/error.h>
#include <tenon/support/hash.h>

#include <cstring>
#include <map>

#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace tenon {

namespace {

bool same_elements(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0);
}

/// Per value: the first constant with the same elements, or the value itself.
std::vector<ValueId> first_equal_constants(const Graph& graph) {
  std::vector<ValueId> first(graph.values.size());
  std::map<uint64_t, std::vector<ValueId>> by_hash;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    first[i] = id;
    if (!graph.values[i].constant) continue;
    const Array& array = *graph.values[i].constant;
    std::vector<ValueId>& bucket =
        by_hash[hash_bytes(array.raw(), static_cast<size_t>(array.bytes()))];
    for (ValueId other : bucket)
      if (first[i] == id && same_elements(array, *graph.value(other).constant)) first[i] = other;
    if (first[i] == id) bucket.push_back(id);
  }
  return first;
}

}  // namespace

Graph merge_common_nodes(Graph graph, const Evaluator&) {
  std::vector<ValueId> same = first_equal_constants(graph);
  std::map<std::string, ValueId> known;
  std::vector<bool> drop(graph.nodes.size(), false);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    std::string key = node.op + attributes_text(node);
    for (ValueId& id : node.inputs) {
      if (id != kAbsent) id = same[static_cast<size_t>(id)];
      key += fmt::format(" {}", id);
    }
    const ValueId out = node.outputs[0];
    const auto [first, fresh] = known.emplace(key, out);
    if (fresh || is_graph_output(graph, out)) continue;
    same[static_cast<size_t>(out)] = first->second;
    drop[i] = true;
  }
  drop_nodes(graph, drop);
  return graph;
}

}  // namespace tenon
