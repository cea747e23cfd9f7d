#pragma once
#include <tenon/graph/graph.h>
#include <tenon/te/te.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What a pass may know of an operator without knowing its name.
enum class OperatorKind : uint8_t {
  pointwise,  // each output element from one element of each input, with broadcasting
  mover,  // each output element is one input element or a constant (transpose, slice, pad, gather)
  view,   // a mover whose output has the very bytes of its input (reshape)
  reduction,  // each output element from many elements (sum, pool, softmax)
  linear,     // sums of products of the data input with a weight input
};

struct TensorInfo {
  DType type = f32;
  std::vector<int64_t> shape;
};

/// Where a linear operator's output channels are: output[.., c, ..] depends on weights[.., c, ..]
/// only.
struct LinearShape {
  int weight_input = 1;
  int weight_axis = 0;  // axis of the weights that numbers output channels
  int output_axis = 1;  // axis of the output that numbers them
};

/// x -> x * scale[c] + shift[c] along an axis of the output.
struct ChannelAffine {
  std::vector<double> scale, shift;
  ValueId data = kAbsent;
};

/// A node on activations [n, c, h, w] in blocks of channels, [n, ceil(c/block), h, w, block].
struct BlockedForm {
  Node node;                  // the operator and its attributes; inputs and outputs as before
  std::vector<bool> blocked;  // per input: taken in blocks; others as they are
  bool starts = false;        // worth blocking its inputs for, where they are not yet
};

/// Who makes and who reads each value, at the start of a pass.
struct GraphUses {
  std::vector<int> producer;
  std::vector<std::vector<int>> readers;
};

/// A convolution by another algorithm: `node` takes the data and what `weights` makes of the
/// weights.
struct TransformedForm {
  Node weights, node;
};

/// A canonical operator: the few that resolve_operators turns all of ONNX's into. One output each.
struct Operator {
  std::string_view op;
  OperatorKind kind;
  /// Type and shape of the output. UserError when the inputs do not fit together.
  TensorInfo (*infer)(const Node& node, const std::vector<TensorInfo>& inputs);
  /// Pointwise: the output element from one element of each input.
  Expr (*element)(const Node& node, const std::vector<Expr>& inputs) = nullptr;
  /// The others: the output as a formula (kernels/); its stages are called `name` and `name.x`.
  Tensor (*formula)(const Node& node, const std::vector<Tensor>& inputs,
                    const std::string& name) = nullptr;
  /// The word that kernels/ has for the operator, where element or formula look it up.
  std::string_view kernel = {};
  /// Linear operators: nothing where weights of several channels cannot be told apart.
  std::optional<LinearShape> (*linear)(const Node& node,
                                       const std::vector<TensorInfo>& inputs) = nullptr;
  /// Where the node may be an affine map per channel with known numbers. Computed in double.
  std::optional<ChannelAffine> (*affine)(const Graph& graph, const Node& node, int axis,
                                         int64_t channels) = nullptr;
  /// Movers that may be read in place: an element costs no more than arithmetic on its index.
  bool in_place = false;
  /// Reductions that read every element of their input once.
  bool single_pass = false;
  /// Where the output may be the first input as it is.
  bool (*identity)(const Node& node, const std::vector<TensorInfo>& inputs) = nullptr;
  /// The node on activations in blocks of channels; nothing where that cannot be or does not pay.
  std::optional<BlockedForm> (*blocked)(const Node& node, const std::vector<TensorInfo>& inputs,
                                        int64_t block) = nullptr;
  /// Makes graph.nodes[at] one operator for what it and nodes ahead of it compute, which are marked
  /// in `drop`; false where they are nothing that one operator does.
  bool (*fuse)(Graph& graph, const GraphUses& uses, size_t at, std::vector<bool>& drop) = nullptr;

  /// Winograd's algorithm, where there is one and it is estimated to be faster.
  std::optional<TransformedForm> (*winograd)(const Node& node,
                                             const std::vector<TensorInfo>& inputs) = nullptr;
};

/// The row of a canonical operator; InternalError for an unknown name.
const Operator& find_operator(std::string_view op);
inline const Operator& operator_of(const Node& node) { return find_operator(node.op); }

/// All rows, by name.
const std::vector<Operator>& operators();

/// The node's output as a formula over `inputs` (an absent one is undefined): one compute for a
/// pointwise operator, else what kernels/ says.
Tensor node_formula(const Node& node, const std::vector<Tensor>& inputs, const std::string& name);

/// Iterations of the loops of the node's own formula: what evaluating it costs.
double node_iterations(const Graph& graph, const Node& node);

/// Adds x * scale + shift per channel of `axis` to the graph (canonical nodes, before
/// `graph.nodes[at]`; parts that change nothing are left out) and gives the result. New constants
/// have the type of x.
ValueId insert_affine(Graph& graph, size_t at, ValueId x, int axis,
                      const std::vector<double>& scale, const std::vector<double>& shift);

/// Types and shapes of a node's inputs; an absent one is an empty f32.
std::vector<TensorInfo> input_infos(const Graph& graph, const Node& node);

/// numpy's rule: aligned at the right, 1 stretches. Nothing when two extents differ and neither
/// is 1.
std::optional<std::vector<int64_t>> broadcast_shapes(const std::vector<int64_t>& a,
                                                     const std::vector<int64_t>& b);

/// "f32[1,3,8,8]"
std::string info_text(const TensorInfo& info);

}  // namespace tenon
