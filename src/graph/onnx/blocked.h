#pragma once
#include "graph/onnx/operators.h"
#include "graph/onnx/shape_rules.h"

namespace tenon {

// Operators on activations in blocks of channels, [n, ceil(c/block), h, w, block] or
// [n, ceil(c/block), w, block], and what other operators become on them.

TensorInfo infer_block_channels(const Node&, const Infos&);
TensorInfo infer_unblock_channels(const Node&, const Infos&);
TensorInfo infer_blocked_conv(const Node&, const Infos&);
TensorInfo infer_blocked_conv_transpose(const Node&, const Infos&);

/// The rule of an operator that has one; null: none, its inputs stay plain.
using BlockedRule = std::optional<BlockedForm> (*)(const Node&, const Infos&, int64_t block);
BlockedRule blocked_form_of(const Operator& row);

/// Appends to `nodes` what makes x[n, c, image..] of the given rank (of one less: [c, image..])
/// blocked, or gives it back with so many channels. The new value's id.
ValueId append_block_channels(Graph& graph, std::vector<Node>& nodes, ValueId x, size_t rank,
                              int64_t block);
void append_unblock_channels(Graph& graph, std::vector<Node>& nodes, ValueId blocked,
                             ValueId plain);
/// Appends the node with the given inputs and an output of its own, called `name`.
ValueId append_node(Graph& graph, std::vector<Node>& nodes, Node node, std::vector<ValueId> inputs,
                    const std::string& name);

}  // namespace tenon
