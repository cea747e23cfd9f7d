#pragma once
#include <tenon/graph/passes.h>

#include <span>

namespace tenon {

// The passes on canonical graphs, one file each. All take the evaluator, which only fold_constants
// uses.

/// fold_constants
///   y = Transpose(w) with constant w   ->   constant y
/// A node whose inputs are all constant is computed now, unless that would blow up memory (an
/// expanded scalar).
Graph fold_constants(Graph graph, const Evaluator& evaluate);

/// fold_affine
///   y = Conv(x, w); z = BatchNormalization(y, s, b, m, v)   ->   y = Conv(x, w * s'[c]); z =
///   Add(y, b'[c])
/// Scales and shifts per output channel that follow a linear node with constant weights become part
/// of the weights and one shift. Computed in double. Not where another node reads the linear node's
/// output, nor where a number is not finite.
Graph fold_affine(Graph graph, const Evaluator&);

/// lower_affine
///   y = BatchNormalization(x, s, b, m, v), all constant   ->   t = Mul(x, s'[c]); y = Add(t,
///   b'[c])
/// What fold_affine left: no square root and division per element.
Graph lower_affine(Graph graph, const Evaluator&);

/// remove_identities
///   y = Identity(x); z = Exp(y)   ->   z = Exp(x)
/// A graph output that is a copy of an input or constant stays a node.
Graph remove_identities(Graph graph, const Evaluator&);

/// merge_common_nodes
///   a = Exp(x); b = Exp(x); c = Add(a, b)   ->   a = Exp(x); c = Add(a, a)
/// Equal constants are one value as well.
Graph merge_common_nodes(Graph graph, const Evaluator&);

/// remove_dead_nodes
///   a = Exp(x); b = Log(x); output b   ->   b = Log(x); output b
/// Values that nothing uses go too; graph inputs stay.
Graph remove_dead_nodes(Graph graph, const Evaluator&);

/// fuse_operators
///   s = MatMul(q, k); t = Mul(s, 0.125); p = Softmax(t); y = MatMul(p, v)   ->   y = Attention(q,
///   k, v) with scale 0.125
/// Chains of operators that one operator computes without their intermediate values, as the rows of
/// the table say; leaves no dead nodes. Results round otherwise.
Graph fuse_operators(Graph graph, const Evaluator&);

/// block_channels
///   c = Conv(x, w); a = Add(c, b); p = MaxPool(a)   ->   c' = BlockedConv(x', w); a' = Add(c',
///   b'); p' = MaxPool(a'); p = UnblockChannels(p')      with x' = BlockChannels(x)
/// Activations from convolutions on keep their channels in blocks, [n, ceil(c/block), h, w, block]
/// (over one dimension without h), as far as operators can work on them; only what enters and
/// leaves is reordered.
Graph block_channels(Graph graph, int64_t block);

/// use_winograd
///   y = BlockedConv(x, w) of 3 x 3 at stride 1   ->   u = WinogradWeights(w); y = WinogradConv(x,
///   u)      with constant w: u is computed now
/// Where that is estimated to be faster. Results differ within winograd_error_bound(), so it runs
/// only where it is asked for.
Graph use_winograd(Graph graph);

struct GraphPass {
  const char* name;
  Graph (*run)(Graph graph, const Evaluator& evaluate);
};

/// The passes in the order in which simplify_graph runs them.
std::span<const GraphPass> graph_passes();

}  // namespace tenon
