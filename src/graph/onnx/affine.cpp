#include "graph/onnx/affine.h"

#include <tenon/support/error.h>

#include <algorithm>
#include <cmath>

namespace tenon {

namespace {

/// The constant input `k` as one number per channel, if it varies along `axis` alone.
std::optional<std::vector<double>> channel_numbers(const Graph& graph, const Node& node, size_t k,
                                                   int axis, int64_t channels) {
  if (!graph.is_constant(node.inputs[k])) return std::nullopt;
  const Array& array = *graph.value(node.inputs[k]).constant;
  if (!is_float(array.dtype())) return std::nullopt;
  const auto rank = static_cast<int>(graph.value(node.outputs[0]).dims->size());
  for (int d = 0; d < array.rank(); ++d) {
    const int64_t extent = array.shape()[static_cast<size_t>(d)];
    if (extent != 1 && (d + rank - array.rank() != axis || extent != channels)) return std::nullopt;
  }
  std::vector<double> numbers = array.to_doubles();
  if (numbers.size() == 1) numbers = std::vector<double>(static_cast<size_t>(channels), numbers[0]);
  return numbers;
}

struct ConstantOperand {
  size_t position;
  std::vector<double> numbers;
};

/// The operand of a binary node that is constant per channel, if the other one has the output's
/// shape.
std::optional<ConstantOperand> constant_operand(const Graph& graph, const Node& node, int axis,
                                                int64_t channels) {
  for (size_t k : {size_t{1}, size_t{0}}) {
    if (graph.value(node.inputs[1 - k]).shape() != graph.value(node.outputs[0]).shape()) continue;
    if (auto numbers = channel_numbers(graph, node, k, axis, channels))
      return ConstantOperand{k, *numbers};
  }
  return std::nullopt;
}

ChannelAffine affine(const Node& node, const ConstantOperand& operand) {
  const size_t n = operand.numbers.size();
  return {std::vector<double>(n, 1.0), std::vector<double>(n, 0.0),
          node.inputs[1 - operand.position]};
}

}  // namespace

std::optional<LinearShape> conv_linear(const Node&, const std::vector<TensorInfo>&) {
  return LinearShape{1, 0, 1};
}

/// With groups a weight column serves one output channel per group, so that it cannot be scaled
/// alone.
std::optional<LinearShape> conv_transpose_linear(const Node& node, const std::vector<TensorInfo>&) {
  if (node.integer("group") != 1) return std::nullopt;
  return LinearShape{1, 1, 1};
}

std::optional<LinearShape> matmul_linear(const Node&, const std::vector<TensorInfo>& inputs) {
  if (inputs[1].shape.size() != 2) return std::nullopt;
  return LinearShape{1, 1, static_cast<int>(inputs[0].shape.size()) - 1};
}

std::optional<ChannelAffine> add_affine(const Graph& graph, const Node& node, int axis,
                                        int64_t channels) {
  auto operand = constant_operand(graph, node, axis, channels);
  if (!operand) return std::nullopt;
  ChannelAffine map = affine(node, *operand);
  map.shift = operand->numbers;
  return map;
}

std::optional<ChannelAffine> sub_affine(const Graph& graph, const Node& node, int axis,
                                        int64_t channels) {
  auto operand = constant_operand(graph, node, axis, channels);
  if (!operand) return std::nullopt;
  ChannelAffine map = affine(node, *operand);
  const bool data_first = operand->position == 1;
  for (size_t c = 0; c < map.scale.size(); ++c) {
    map.scale[c] = data_first ? 1.0 : -1.0;
    map.shift[c] = data_first ? -operand->numbers[c] : operand->numbers[c];
  }
  return map;
}

std::optional<ChannelAffine> mul_affine(const Graph& graph, const Node& node, int axis,
                                        int64_t channels) {
  auto operand = constant_operand(graph, node, axis, channels);
  if (!operand) return std::nullopt;
  ChannelAffine map = affine(node, *operand);
  map.scale = operand->numbers;
  return map;
}

std::optional<ChannelAffine> div_affine(const Graph& graph, const Node& node, int axis,
                                        int64_t channels) {
  auto operand = constant_operand(graph, node, axis, channels);
  if (!operand || operand->position != 1) return std::nullopt;
  ChannelAffine map = affine(node, *operand);
  for (size_t c = 0; c < map.scale.size(); ++c) map.scale[c] = 1.0 / operand->numbers[c];
  return map;
}

/// y = (x - mean) * scale / sqrt(variance + epsilon) + bias
std::optional<ChannelAffine> batch_norm_affine(const Graph& graph, const Node& node, int axis,
                                               int64_t channels) {
  std::vector<std::vector<double>> parameters;
  for (size_t k = 1; k < 5; ++k) {
    auto numbers = channel_numbers(graph, node, k, axis, channels);
    if (!numbers) return std::nullopt;
    parameters.push_back(std::move(*numbers));
  }
  ChannelAffine map{{}, {}, node.inputs[0]};
  const double epsilon = node.real("epsilon");
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    map.scale.push_back(parameters[0][c] / std::sqrt(parameters[3][c] + epsilon));
    map.shift.push_back(parameters[1][c] - parameters[2][c] * map.scale[c]);
  }
  return map;
}

ValueId insert_affine(Graph& graph, size_t at, ValueId x, int axis,
                      const std::vector<double>& scale, const std::vector<double>& shift) {
  const Value like = graph.value(x);
  std::vector<int64_t> shape(like.dims->size() - static_cast<size_t>(axis), 1);
  shape[0] = static_cast<int64_t>(scale.size());
  const auto insert = [&](const char* op, const std::vector<double>& numbers, double neutral) {
    if (std::all_of(numbers.begin(), numbers.end(), [&](double n) { return n == neutral; })) return;
    const std::string name = fmt::format("{}.{}", like.name, op);
    const ValueId operand =
        graph.add_constant(name + ".constant", from_doubles(*like.type, shape, numbers));
    const ValueId out = graph.add_value({name, like.type, like.dims, {}});
    graph.nodes.insert(graph.nodes.begin() + static_cast<ptrdiff_t>(at++),
                       {name, op, {}, {x, operand}, {out}});
    x = out;
  };
  insert("Mul", scale, 1.0);
  insert("Add", shift, 0.0);
  return x;
}

}  // namespace tenon
