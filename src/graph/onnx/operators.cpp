#include "graph/onnx/operators.h"

#include <tenon/support/error.h>

#include <algorithm>

#include "graph/onnx/affine.h"
#include "graph/onnx/shape_rules.h"

namespace tenon {

namespace {

using enum OperatorKind;

std::vector<Operator> make_operators() {
  std::vector<Operator> rows = {
      // movers
      {"Concat", mover, infer_concat},
      {"Expand", mover, infer_expand},
      {"Gather", mover, infer_gather},
      {"Iota", mover, infer_iota},
      {"Pad", mover, infer_pad},
      {"Reshape", mover, infer_reshape},
      {"Slice", mover, infer_slice},
      {"Transpose", mover, infer_transpose},
      // reductions
      {"AveragePool", reduction, infer_pool},
      {"MaxPool", reduction, infer_pool},
      {"ReduceMax", reduction, infer_reduce},
      {"ReduceMin", reduction, infer_reduce},
      {"ReduceProd", reduction, infer_reduce},
      {"ReduceSum", reduction, infer_reduce},
      {"Softmax", reduction, infer_softmax},
      // linear
      {"Conv", linear, infer_conv, conv_linear},
      {"ConvTranspose", linear, infer_conv_transpose, conv_transpose_linear},
      {"MatMul", linear, infer_matmul, matmul_linear},
      // pointwise
      {"Add", pointwise, infer_pointwise, nullptr, add_affine},
      {"And", pointwise, infer_logical},
      {"BatchNormalization", pointwise, infer_batch_norm, nullptr, batch_norm_affine},
      {"Cast", pointwise, infer_cast},
      {"Div", pointwise, infer_pointwise, nullptr, div_affine},
      {"Identity", pointwise, infer_pointwise},
      {"Mul", pointwise, infer_pointwise, nullptr, mul_affine},
      {"Not", pointwise, infer_logical},
      {"Or", pointwise, infer_logical},
      {"Sub", pointwise, infer_pointwise, nullptr, sub_affine},
      {"Where", pointwise, infer_where},
      {"Xor", pointwise, infer_logical},
  };
  for (const char* op : {"Abs", "BitAnd", "BitNot", "BitOr", "BitXor", "FloorMod", "Max", "Min",
                         "Neg", "ShiftLeft", "ShiftRight", "TruncMod"})
    rows.push_back({op, pointwise, infer_pointwise});
  for (const char* op : {"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil",  "Cos",
                         "Cosh", "Erf",   "Exp",  "Floor", "Log",  "Pow",   "Round", "Sigmoid",
                         "Sin",  "Sinh",  "Sqrt", "Tan",   "Tanh", "Trunc"})
    rows.push_back({op, pointwise, infer_float_pointwise});
  for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less", "LessOrEqual"})
    rows.push_back({op, pointwise, infer_comparison});
  return rows;
}

}  // namespace

const std::vector<Operator>& operators() {
  static const std::vector<Operator> rows = make_operators();
  return rows;
}

const Operator& find_operator(std::string_view op) {
  for (const Operator& row : operators())
    if (row.op == op) return row;
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
