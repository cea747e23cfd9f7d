#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "graph/onnx/shape_rules.h"
#include "kernels/conv.h"
#include "kernels/pool.h"

namespace tenon {

namespace {

void need_same_float(const Node& node, const TensorInfo& a, const TensorInfo& b) {
  if (a.type != b.type)
    fail_shape(fmt::format("{} and {} inputs of {} must have one type", name(a.type), name(b.type),
                           node.op));
}

[[noreturn]] void fail_window(size_t d, int64_t extent, int64_t begin, int64_t end, int64_t kernel,
                              int64_t dilation) {
  fail_shape(
      fmt::format("spatial axis {} has extent {} with pads {} and {}; a window of {} with dilation "
                  "{} does not fit",
                  d, extent, begin, end, kernel, dilation));
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

TensorInfo infer_arg(const Node& node, const Infos& inputs) {
  TensorInfo out{i64, inputs.at(0).shape};
  const auto axis = static_cast<ptrdiff_t>(node.integer("axis"));
  if (out.shape[static_cast<size_t>(axis)] == 0) fail_shape("an empty axis has no position");
  out.shape[static_cast<size_t>(axis)] = 1;
  if (node.integer("keepdims") == 0) out.shape.erase(out.shape.begin() + axis);
  return out;
}

TensorInfo infer_pool(const Node& node, const Infos& inputs) {
  const TensorInfo& x = inputs.at(0);
  const std::vector<int64_t>&kernel = node.integers("kernel"), &strides = node.integers("strides"),
        &dilations = node.integers("dilations"), &pads = node.integers("pads");
  TensorInfo out{x.type, {x.shape[0], x.shape[1]}};
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t end = pads[d + kernel.size()], extent = x.shape[d + 2];
    const int64_t count = pool_extent(extent, kernel[d], strides[d], dilations[d], pads[d], end,
                                      node.integer("ceil_mode") != 0);
    if (count < 1) fail_window(d, extent, pads[d], end, kernel[d], dilations[d]);
    out.shape.push_back(count);
  }
  return out;
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
  if (x.shape[1] % group != 0 || w.shape[1] != x.shape[1] / group || w.shape[0] % group != 0)
    fail_shape(
        fmt::format("{} input channels, weights {} and {} groups do not fit: weights are "
                    "[outputs, channels / groups, ...] and groups divide both",
                    x.shape[1], shape_text(w.shape), group));
  TensorInfo out{x.type, {x.shape[0], w.shape[0]}};
  for (size_t d = 0; d + 2 < w.shape.size(); ++d) {
    const int64_t begin = node.integers("pads")[d],
                  end = node.integers("pads")[d + w.shape.size() - 2];
    const int64_t dilation = node.integers("dilations")[d];
    const int64_t count = window_extent(x.shape[d + 2], w.shape[d + 2], node.integers("strides")[d],
                                        dilation, begin + end);
    if (count < 1) fail_window(d, x.shape[d + 2], begin, end, w.shape[d + 2], dilation);
    out.shape.push_back(count);
  }
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
  TensorInfo out{x.type, {x.shape[0], w.shape[1]}};
  if (__builtin_mul_overflow(w.shape[1], group, &out.shape[1]))
    fail_shape(fmt::format("{} groups of {} channels are too many", group, w.shape[1]));
  for (int64_t extent : node.integers("output")) out.shape.push_back(extent);
  return out;
}

}  // namespace tenon
