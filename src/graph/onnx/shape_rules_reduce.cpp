#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "graph/onnx/shape_rules.h"

namespace tenon {

namespace {

void need_same_float(const Node& node, const TensorInfo& a, const TensorInfo& b) {
  if (a.type != b.type)
    fail_shape(fmt::format("{} and {} inputs of {} must have one type", name(a.type), name(b.type),
                           node.op));
}

/// Number of positions of a window of `kernel` cells `dilation` apart, over `padded` cells.
int64_t window_count(int64_t padded, int64_t kernel, int64_t dilation, int64_t stride) {
  int64_t span = 0;
  if (__builtin_mul_overflow(kernel - 1, dilation, &span) || padded - 1 < span) return 0;
  return (padded - 1 - span) / stride + 1;
}

/// Spatial extents of a windowed operator on input x with attributes strides, pads, dilations.
std::vector<int64_t> window_shape(const Node& node, const TensorInfo& x,
                                  const std::vector<int64_t>& kernel) {
  const std::vector<int64_t>&strides = node.integers("strides"), &pads = node.integers("pads"),
        &dilations = node.integers("dilations");
  std::vector<int64_t> shape;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t padded = x.shape[d + 2] + pads[d] + pads[d + kernel.size()];
    const int64_t count = window_count(padded, kernel[d], dilations[d], strides[d]);
    if (count <= 0)
      fail_shape(fmt::format(
          "spatial axis {} has extent {} with pads {} and {}; a window of {} with "
          "dilation {} does not fit",
          d, x.shape[d + 2], pads[d], pads[d + kernel.size()], kernel[d], dilations[d]));
    shape.push_back(count);
  }
  return shape;
}

}  // namespace

TensorInfo infer_reduce(const Node& node, const Infos& inputs) {
  const std::vector<int64_t>& axes = node.integers("axes");
  const bool keep = node.integer("keepdims") != 0;
  TensorInfo out{inputs.at(0).type, {}};
  for (size_t d = 0; d < inputs[0].shape.size(); ++d) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!reduced || keep) out.shape.push_back(reduced ? 1 : inputs[0].shape[d]);
  }
  return out;
}

TensorInfo infer_softmax(const Node& node, const Infos& inputs) {
  if (!is_float(inputs.at(0).type))
    fail_shape(fmt::format("{} is defined for floating point, the input is {}", node.op,
                           name(inputs[0].type)));
  return inputs[0];
}

TensorInfo infer_pool(const Node& node, const Infos& inputs) {
  const TensorInfo& x = inputs.at(0);
  TensorInfo out{x.type, {x.shape[0], x.shape[1]}};
  for (int64_t extent : window_shape(node, x, node.integers("kernel"))) out.shape.push_back(extent);
  return out;
}

TensorInfo infer_batch_norm(const Node& node, const Infos& inputs) {
  const TensorInfo& x = inputs.at(0);
  if (!is_float(x.type))
    fail_shape(fmt::format("the input is {}, it must be a float", name(x.type)));
  if (x.shape.size() < 2) fail_shape("the input needs a batch and a channel axis");
  const char* const names[] = {"", "scale", "bias", "mean", "variance"};
  for (size_t i = 1; i < 5; ++i) {
    need_same_float(node, x, inputs.at(i));
    if (inputs[i].shape != std::vector<int64_t>{x.shape[1]})
      fail_shape(fmt::format("{} has shape {}, the input has {} channels", names[i],
                             shape_text(inputs[i].shape), x.shape[1]));
  }
  return x;
}

TensorInfo infer_matmul(const Node& node, const Infos& inputs) {
  const TensorInfo &a = inputs.at(0), &b = inputs.at(1);
  need_same_float(node, a, b);
  TENON_CHECK(a.shape.size() >= 2 && b.shape.size() >= 2, "MatMul of ranks {} and {}",
              a.shape.size(), b.shape.size());
  const int64_t k = a.shape.back(), rows = b.shape[b.shape.size() - 2];
  if (k != rows)
    fail_shape(
        fmt::format("the last extent of {} is {}, it must equal the second to last of {}, {}",
                    shape_text(a.shape), k, shape_text(b.shape), rows));
  auto batch =
      broadcast_shapes({a.shape.begin(), a.shape.end() - 2}, {b.shape.begin(), b.shape.end() - 2});
  if (!batch)
    fail_shape(fmt::format("batch extents of {} and {} do not broadcast", shape_text(a.shape),
                           shape_text(b.shape)));
  batch->push_back(a.shape[a.shape.size() - 2]);
  batch->push_back(b.shape.back());
  return {a.type, *batch};
}

TensorInfo infer_conv(const Node& node, const Infos& inputs) {
  const TensorInfo &x = inputs.at(0), &w = inputs.at(1);
  need_same_float(node, x, w);
  const int64_t group = node.integer("group");
  if (w.shape[1] * group != x.shape[1] || w.shape[0] % group != 0)
    fail_shape(
        fmt::format("{} input channels, weights {} and {} groups do not fit: weights are "
                    "[outputs, channels / groups, ...] and groups divide both",
                    x.shape[1], shape_text(w.shape), group));
  TensorInfo out{x.type, {x.shape[0], w.shape[0]}};
  for (int64_t extent : window_shape(node, x, {w.shape.begin() + 2, w.shape.end()}))
    out.shape.push_back(extent);
  return out;
}

TensorInfo infer_conv_transpose(const Node& node, const Infos& inputs) {
  const TensorInfo &x = inputs.at(0), &w = inputs.at(1);
  need_same_float(node, x, w);
  const int64_t group = node.integer("group");
  if (w.shape[0] != x.shape[1] || x.shape[1] % group != 0)
    fail_shape(
        fmt::format("{} input channels, weights {} and {} groups do not fit: weights are "
                    "[channels, outputs / groups, ...] and groups divide the channels",
                    x.shape[1], shape_text(w.shape), group));
  TensorInfo out{x.type, {x.shape[0], w.shape[1] * group}};
  for (int64_t extent : node.integers("output")) out.shape.push_back(extent);
  return out;
}

}  // namespace tenon
