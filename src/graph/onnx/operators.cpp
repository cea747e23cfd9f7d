#include "graph/onnx/operators.h"

#include <tenon/support/error.h>

#include <algorithm>

#include "graph/onnx/affine.h"
#include "graph/onnx/attention.h"
#include "graph/onnx/blocked.h"
#include "graph/onnx/formulas.h"
#include "graph/onnx/shape_rules.h"
#include "graph/onnx/winograd.h"

namespace tenon {

namespace {

using enum OperatorKind;

struct Word {
  const char *op, *kernel;
};

const Operator kRows[] = {
    // movers
    {"BlockChannels", mover, infer_block_channels, nullptr, block_channels_formula},
    {"Concat", mover, infer_concat, nullptr, concat_formula},
    {"DepthToSpace", mover, infer_depth_to_space, nullptr, depth_to_space_formula},
    {"Expand", mover, infer_expand, nullptr, expand_formula},
    {"Gather", mover, infer_gather, nullptr, gather_formula},
    {"GatherElements", mover, infer_gather_elements, nullptr, gather_elements_formula},
    {"GatherND", mover, infer_gather_nd, nullptr, gather_nd_formula},
    {"Iota", mover, infer_iota, nullptr, iota_formula},
    {"Pad", mover, infer_pad, nullptr, pad_formula},
    {"Reshape", view, infer_reshape, nullptr, reshape_formula},
    {"Slice", mover, infer_slice, nullptr, slice_formula},
    {"SpaceToDepth", mover, infer_space_to_depth, nullptr, space_to_depth_formula},
    {"Tile", mover, infer_tile, nullptr, tile_formula},
    {"Transpose", mover, infer_transpose, nullptr, transpose_formula},
    {"Triangle", mover, infer_same, nullptr, triangle_formula},
    {"UnblockChannels", mover, infer_unblock_channels, nullptr, unblock_channels_formula},
    // reductions
    {"ArgMax", reduction, infer_arg, nullptr, arg_formula, "argmax"},
    {"ArgMin", reduction, infer_arg, nullptr, arg_formula, "argmin"},
    {"AveragePool", reduction, infer_pool, nullptr, average_pool_formula},
    {"CumSum", reduction, infer_same, nullptr, cumulative_sum_formula},
    {"InstanceNormalization", reduction, infer_same_float, nullptr, instance_norm_formula},
    {"LRN", reduction, infer_same_float, nullptr, lrn_formula},
    {"LayerNormalization", reduction, infer_same_float, nullptr, layer_norm_formula},
    {"LogSoftmax", reduction, infer_same_float, nullptr, log_softmax_formula},
    {"LpPool", reduction, infer_pool, nullptr, lp_pool_formula},
    {"MaxPool", reduction, infer_pool, nullptr, max_pool_formula},
    {"Softmax", reduction, infer_same_float, nullptr, softmax_formula},
    // linear
    {"Attention", linear, infer_attention, nullptr, attention_formula},
    {"BlockedConv", linear, infer_blocked_conv, nullptr, blocked_conv_formula},
    {"BlockedConvTranspose", linear, infer_blocked_conv_transpose, nullptr,
     blocked_conv_transpose_formula},
    {"Conv", linear, infer_conv, nullptr, conv_formula, {}, conv_linear},
    {"ConvTranspose",
     linear,
     infer_conv_transpose,
     nullptr,
     conv_transpose_formula,
     {},
     conv_transpose_linear},
    {"WinogradConv", linear, infer_winograd_conv, nullptr, winograd_conv_formula},
    {"WinogradWeights", reduction, infer_winograd_weights, nullptr, winograd_weights_formula},
    {"MatMul", linear, infer_matmul, nullptr, matmul_formula, {}, matmul_linear},
    // pointwise
    {"Add", pointwise, infer_pointwise, binary_element, nullptr, "add", nullptr, add_affine},
    {"BatchNormalization",
     pointwise,
     infer_pointwise,
     batch_norm_element,
     nullptr,
     {},
     nullptr,
     batch_norm_affine},
    {"BitCast", pointwise, infer_cast, bit_cast_element},
    {"Cast", pointwise, infer_cast, cast_element},
    {"Div", pointwise, infer_pointwise, binary_element, nullptr, "div", nullptr, div_affine},
    {"Mul", pointwise, infer_pointwise, binary_element, nullptr, "mul", nullptr, mul_affine},
    {"Sub", pointwise, infer_pointwise, binary_element, nullptr, "sub", nullptr, sub_affine},
    {"Where", pointwise, infer_where, where_element},
};

// Pointwise operators that kernels/ knows by a word. Types are checked there.
const Word kUnary[] = {
    {"Abs", "abs"},
    {"Acos", "acos"},
    {"Acosh", "acosh"},
    {"Asin", "asin"},
    {"Asinh", "asinh"},
    {"Atan", "atan"},
    {"Atanh", "atanh"},
    {"BitNot", "bit_not"},
    {"Ceil", "ceil"},
    {"Celu", "celu"},
    {"Cos", "cos"},
    {"Cosh", "cosh"},
    {"Elu", "elu"},
    {"Erf", "erf"},
    {"Exp", "exp"},
    {"Floor", "floor"},
    {"Gelu", "gelu"},
    {"HardSigmoid", "hard_sigmoid"},
    {"HardSwish", "hard_swish"},
    {"Identity", "identity"},
    {"LeakyRelu", "leaky_relu"},
    {"Log", "log"},
    {"Mish", "mish"},
    {"Neg", "neg"},
    {"Not", "not"},
    {"Reciprocal", "reciprocal"},
    {"Relu", "relu"},
    {"Round", "round"},
    {"Selu", "selu"},
    {"Shrink", "shrink"},
    {"Sigmoid", "sigmoid"},
    {"Sign", "sign"},
    {"Sin", "sin"},
    {"Sinh", "sinh"},
    {"Softplus", "softplus"},
    {"Softsign", "softsign"},
    {"Sqrt", "sqrt"},
    {"Swish", "silu"},
    {"Tan", "tan"},
    {"Tanh", "tanh"},
    {"ThresholdedRelu", "thresholded_relu"},
};
const Word kBinary[] = {
    {"And", "and"},
    {"BitAnd", "bit_and"},
    {"BitOr", "bit_or"},
    {"BitXor", "bit_xor"},
    {"Max", "max"},
    {"Min", "min"},
    {"Mod", "mod"},
    {"Or", "or"},
    {"PRelu", "prelu"},
    {"Pow", "pow"},
    {"ShiftLeft", "shift_left"},
    {"ShiftRight", "shift_right"},
    {"Xor", "xor"},
};
const Word kTests[] = {{"IsInf", "is_inf"}, {"IsNaN", "is_nan"}};
const Word kComparisons[] = {{"Equal", "equal"},
                             {"Greater", "greater"},
                             {"GreaterOrEqual", "greater_equal"},
                             {"Less", "less"},
                             {"LessOrEqual", "less_equal"}};
const Word kReductions[] = {{"ReduceL1", "l1"},          {"ReduceL2", "l2"},
                            {"ReduceLogSum", "log_sum"}, {"ReduceLogSumExp", "log_sum_exp"},
                            {"ReduceMax", "max"},        {"ReduceMean", "mean"},
                            {"ReduceMin", "min"},        {"ReduceProd", "prod"},
                            {"ReduceSum", "sum"},        {"ReduceSumSquare", "sum_square"}};

bool always(const Node&, const std::vector<TensorInfo>&) { return true; }
bool keeps_shape(const Node& node, const std::vector<TensorInfo>& inputs) {
  return node.integers("shape") == inputs.at(0).shape;
}

std::vector<Operator> make_operators() {
  std::vector<Operator> rows(std::begin(kRows), std::end(kRows));
  for (const Word& w : kUnary)
    rows.push_back({w.op, pointwise, infer_pointwise, unary_element, nullptr, w.kernel});
  for (const Word& w : kBinary)
    rows.push_back({w.op, pointwise, infer_pointwise, binary_element, nullptr, w.kernel});
  for (const Word& w : kTests)
    rows.push_back({w.op, pointwise, infer_comparison, unary_element, nullptr, w.kernel});
  for (const Word& w : kComparisons)
    rows.push_back({w.op, pointwise, infer_comparison, binary_element, nullptr, w.kernel});
  for (const Word& w : kReductions)
    rows.push_back({w.op, reduction, infer_reduce, nullptr, reduce_formula, w.kernel});
  for (Operator& row : rows) {
    row.in_place = row.op == "Expand" || row.op == "Slice" || row.op == "Transpose";
    row.single_pass = row.formula == reduce_formula;
    row.blocked = blocked_form_of(row);
    if (row.op == "MatMul") row.fuse = fuse_attention;
    if (row.op == "BlockedConv") row.winograd = winograd_form;
    if (row.op == "Identity") row.identity = always;
    if (row.op == "Reshape") row.identity = keeps_shape;
  }
  std::sort(rows.begin(), rows.end(),
            [](const Operator& a, const Operator& b) { return a.op < b.op; });
  return rows;
}

}  // namespace

const std::vector<Operator>& operators() {
  static const std::vector<Operator> rows = make_operators();
  return rows;
}

const Operator& find_operator(std::string_view op) {
  const std::vector<Operator>& rows = operators();
  const auto at =
      std::lower_bound(rows.begin(), rows.end(), op,
                       [](const Operator& row, std::string_view name) { return row.op < name; });
  if (at != rows.end() && at->op == op) return *at;
  throw InternalError(fmt::format("\"{}\" is no canonical operator", op));
}

std::vector<TensorInfo> input_infos(const Graph& graph, const Node& node) {
  std::vector<TensorInfo> infos;
  for (ValueId id : node.inputs)
    infos.push_back(id == kAbsent ? TensorInfo{}
                                  : TensorInfo{*graph.value(id).type, graph.value(id).shape()});
  return infos;
}

}  // namespace tenon
