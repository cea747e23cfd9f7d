#include <tenon/support/error.h>
#include <tenon/support/log.h>

#include <algorithm>
#include <cmath>

#include "graph/onnx/operators.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

namespace tenon {

namespace {

/// The affine nodes that follow a linear one and nothing else reads between them, as one map.
struct Chain {
  std::vector<size_t> nodes;
  std::vector<double> scale, shift;
  ValueId last = kAbsent;
};

Chain affine_chain(const Graph& graph, const std::vector<std::vector<int>>& readers,
                   const Node& linear, int axis, int64_t channels) {
  const auto n = static_cast<size_t>(channels);
  Chain chain{{}, std::vector<double>(n, 1.0), std::vector<double>(n, 0.0), linear.outputs[0]};
  for (;;) {
    const std::vector<int>& list = readers[static_cast<size_t>(chain.last)];
    if (list.size() != 1 || is_graph_output(graph, chain.last)) return chain;
    const Node& node = graph.nodes[static_cast<size_t>(list[0])];
    const Operator& row = operator_of(node);
    const auto map = row.affine ? row.affine(graph, node, axis, channels) : std::nullopt;
    if (!map || map->data != chain.last) return chain;
    for (size_t c = 0; c < n; ++c) {
      chain.scale[c] *= map->scale[c];
      chain.shift[c] = chain.shift[c] * map->scale[c] + map->shift[c];
    }
    chain.nodes.push_back(static_cast<size_t>(list[0]));
    chain.last = node.outputs[0];
  }
}

bool all_equal(const std::vector<double>& numbers, double value) {
  return std::all_of(numbers.begin(), numbers.end(), [&](double x) { return x == value; });
}

bool all_finite(const std::vector<double>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

/// weights * scale along `axis`, multiplied in double and rounded once.
Array scaled_weights(const Array& weights, int axis, const std::vector<double>& scale) {
  std::vector<double> elements = weights.to_doubles();
  const auto at = weights.shape().begin() + axis;
  const int64_t inner = element_count({at + 1, weights.shape().end()});
  const int64_t channels = weights.shape()[static_cast<size_t>(axis)];
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] *= scale[static_cast<size_t>(static_cast<int64_t>(i) / inner % channels)];
  return from_doubles(weights.dtype(), weights.shape(), elements);
}

/// Folds what follows graph.nodes[i], if anything does. The nodes folded away are marked in `drop`.
bool fold_into(Graph& graph, const std::vector<std::vector<int>>& readers, size_t i,
               std::vector<bool>& drop, std::vector<std::pair<size_t, Chain>>& shifts) {
  Node& node = graph.nodes[i];
  const Operator& row = operator_of(node);
  const auto shape = row.linear ? row.linear(node, input_infos(graph, node)) : std::nullopt;
  if (!shape) return false;
  const ValueId weights = node.inputs[static_cast<size_t>(shape->weight_input)];
  if (!graph.is_constant(weights)) return false;
  const int64_t channels =
      graph.value(node.outputs[0]).shape()[static_cast<size_t>(shape->output_axis)];
  Chain chain = affine_chain(graph, readers, node, shape->output_axis, channels);
  if (chain.nodes.empty() || !all_finite(chain.scale) || !all_finite(chain.shift)) return false;
  const bool unscaled = all_equal(chain.scale, 1.0);
  if (unscaled && chain.nodes.size() == 1) return false;
  if (!unscaled) {
    const Value& old = graph.value(weights);
    node.inputs[static_cast<size_t>(shape->weight_input)] = graph.add_constant(
        old.name + ".scaled", scaled_weights(*old.constant, shape->weight_axis, chain.scale));
  }
  for (size_t k : chain.nodes) drop[k] = true;
  shifts.emplace_back(i, std::move(chain));
  return true;
}

}  // namespace

Graph fold_affine(Graph graph, const Evaluator&) {
  const std::vector<std::vector<int>> readers = consumers(graph);
  std::vector<bool> drop(graph.nodes.size(), false);
  std::vector<std::pair<size_t, Chain>> shifts;
  for (size_t i = 0; i < drop.size(); ++i) fold_into(graph, readers, i, drop, shifts);
  // What is left after the linear node is its shift, which writes the chain's last value. From the
  // back, so that positions stay right.
  for (auto at = shifts.rbegin(); at != shifts.rend(); ++at) {
    const auto& [i, chain] = *at;
    const ValueId linear = graph.nodes[i].outputs[0];
    const int axis = operator_of(graph.nodes[i])
                         .linear(graph.nodes[i], input_infos(graph, graph.nodes[i]))
                         ->output_axis;
    const size_t before = graph.nodes.size();
    const ValueId shifted = insert_affine(
        graph, i + 1, linear, axis, std::vector<double>(chain.shift.size(), 1.0), chain.shift);
    const size_t added = graph.nodes.size() - before;
    drop.insert(drop.begin() + static_cast<ptrdiff_t>(i) + 1, added, false);
    for (size_t k = i; k <= i + added; ++k)
      if (graph.nodes[k].outputs[0] == shifted) graph.nodes[k].outputs[0] = chain.last;
  }
  drop_nodes(graph, drop);
  log_line(2, "graph/fold_affine", fmt::format("{} chains folded into weights", shifts.size()));
  return graph;
}

}  // namespace tenon
