#pragma once
#include <tenon/graph/graph.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tenon {

/// Computes a canonical node whose inputs are all constants: type and shape of the result are those
/// of the node's output value in `graph`. The node need not be among graph.nodes.
using Evaluator = std::function<Array(const Graph& graph, const Node& node)>;

/// Runs the node's own formula: small ones in the interpreter, large ones (weights) compiled as
/// they stand.
Evaluator formula_evaluator();

/// What a user says of a model's inputs ahead of time.
struct InputBindings {
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Inputs whose contents are given too: they become constants and are no inputs any more (what a
  /// shape depends on must be known before a network can be compiled).
  std::map<std::string, Array> values;
};

/// bind_shapes
///   input x f32[batch,3,h,w]   ->   input x f32[1,3,48,192]
/// A name bound through one input counts for all. UserError: an unknown input, another rank, extent
/// or type than the model declares, one name bound to two extents, dimensions that stay without
/// extent.
Graph bind_shapes(Graph graph, const InputBindings& bindings);

/// resolve_operators
///   s = Shape(x); h = Gather(s, 2); y = Reshape(x, Concat(h, -1)); z = Gemm(y, w, b, transB=1)
///   ->   y = Reshape(x) shape=[48,576]; wt = Transpose(w) perm=[1,0]; t = MatMul(y, wt); z =
///   Add(t, b)
/// Infers every type and shape, computes small constant chains and writes each ONNX node in
/// canonical operators, attributes resolved. Needs bound shapes; sets opset to 0. UserError names
/// the node that does not fit.
Graph resolve_operators(const Graph& graph, const Evaluator& evaluate);

struct SimplifyOptions {
  std::vector<std::string> skip;  // names of passes to leave out
  bool verify = false;            // verify_graph after each pass
  int64_t block = 0;              // channels in a block of "block_channels"; 0: not run
  bool allow_winograd = false;    // "use_winograd", after it: results differ by more than rounding
};

/// Runs the passes on a canonical graph in the order of src/graph/passes/passes.cpp, where each is
/// described. UserError for an unknown name in `skip`.
Graph simplify_graph(Graph graph, const Evaluator& evaluate, const SimplifyOptions& options = {});

}  // namespace tenon
