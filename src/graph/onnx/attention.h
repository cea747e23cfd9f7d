#pragma once
#include "graph/onnx/operators.h"
#include "graph/onnx/shape_rules.h"

namespace tenon {

// Attention as one node: inputs q, k, v and, where there is one, a mask; attributes scale and
// keys_as_columns (k is [.., d, n]).

TensorInfo infer_attention(const Node&, const Infos&);
Tensor attention_formula(const Node&, const std::vector<Tensor>&, const std::string& name);

/// For a MatMul that weights values by the softmax of scaled scores of queries and keys: the node
/// becomes the Attention of those. A Transpose that only turned the keys into columns leaves them
/// as rows.
bool fuse_attention(Graph& graph, const GraphUses& uses, size_t at, std::vector<bool>& drop);

}  // namespace tenon
