#include "graph/onnx/shape_rules.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

namespace tenon {

namespace {

std::vector<int64_t> broadcast_all(const Infos& inputs) {
  std::vector<int64_t> shape;
  for (const TensorInfo& input : inputs) {
    auto joined = broadcast_shapes(shape, input.shape);
    if (!joined)
      fail_shape(
          fmt::format("shapes {} and {} do not broadcast: aligned at the right, extents must be "
                      "equal or 1",
                      shape_text(shape), shape_text(input.shape)));
    shape = *joined;
  }
  return shape;
}

void need_one_type(const Infos& inputs, size_t first) {
  for (size_t i = first + 1; i < inputs.size(); ++i)
    if (inputs[i].type != inputs[first].type)
      fail_shape(fmt::format("inputs have types {} and {}; they must be the same",
                             name(inputs[first].type), name(inputs[i].type)));
}

void need_index(const TensorInfo& indices) {
  if (indices.type != i32 && indices.type != i64)
    fail_shape(fmt::format("indices are {}, they must be i32 or i64", name(indices.type)));
}

int64_t checked_product(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      fail_shape(fmt::format("shape {} is no shape", shape_text(shape)));
  return count;
}

}  // namespace

void fail_shape(const std::string& rule) { throw UserError(rule); }

std::optional<std::vector<int64_t>> broadcast_shapes(const std::vector<int64_t>& a,
                                                     const std::vector<int64_t>& b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<int64_t> shape(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[rank - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

std::string info_text(const TensorInfo& info) {
  return fmt::format("{}[{}]", name(info.type), fmt::join(info.shape, ","));
}

TensorInfo infer_same(const Node&, const Infos& inputs) { return inputs.at(0); }

TensorInfo infer_same_float(const Node& node, const Infos& inputs) {
  if (!is_float(inputs.at(0).type))
    fail_shape(fmt::format("{} is defined for floating point, the input is {}", node.op,
                           name(inputs[0].type)));
  return inputs[0];
}

TensorInfo infer_pointwise(const Node&, const Infos& inputs) {
  need_one_type(inputs, 0);
  return {inputs.at(0).type, broadcast_all(inputs)};
}

TensorInfo infer_comparison(const Node& node, const Infos& inputs) {
  return {boolean, infer_pointwise(node, inputs).shape};
}

TensorInfo infer_where(const Node&, const Infos& inputs) {
  if (inputs.at(0).type != boolean)
    fail_shape(fmt::format("the condition is {}, it must be bool", name(inputs[0].type)));
  need_one_type(inputs, 1);
  return {inputs.at(1).type, broadcast_all(inputs)};
}

TensorInfo infer_cast(const Node& node, const Infos& inputs) {
  return {node.dtype("to"), inputs.at(0).shape};
}

TensorInfo infer_reshape(const Node& node, const Infos& inputs) {
  const std::vector<int64_t>& shape = node.integers("shape");
  if (checked_product(shape) != checked_product(inputs.at(0).shape))
    fail_shape(fmt::format("shape {} has {} elements, the input {} has {}", shape_text(shape),
                           checked_product(shape), shape_text(inputs[0].shape),
                           checked_product(inputs[0].shape)));
  return {inputs[0].type, shape};
}

TensorInfo infer_transpose(const Node& node, const Infos& inputs) {
  const std::vector<int64_t>& perm = node.integers("perm");
  const TensorInfo& x = inputs.at(0);
  std::vector<int64_t> sorted = perm, shape;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = perm.size() == x.shape.size();
  for (size_t i = 0; i < sorted.size(); ++i)
    permutation = permutation && sorted[i] == static_cast<int64_t>(i);
  if (!permutation)
    fail_shape(fmt::format("perm [{}] is no permutation of the {} axes", fmt::join(perm, ","),
                           x.shape.size()));
  for (int64_t axis : perm) shape.push_back(x.shape[static_cast<size_t>(axis)]);
  return {x.type, shape};
}

/// starts, steps and the output's extents per axis, already clamped by the rule that emits it.
TensorInfo infer_slice(const Node& node, const Infos& inputs) {
  const std::vector<int64_t>&starts = node.integers("starts"), &steps = node.integers("steps"),
        &shape = node.integers("shape");
  const TensorInfo& x = inputs.at(0);
  TENON_CHECK(starts.size() == x.shape.size() && steps.size() == x.shape.size() &&
                  shape.size() == x.shape.size(),
              "Slice of rank {} with {} starts", x.shape.size(), starts.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) continue;
    const int64_t last = starts[i] + (shape[i] - 1) * steps[i];
    TENON_CHECK(starts[i] >= 0 && starts[i] < x.shape[i] && last >= 0 && last < x.shape[i],
                "Slice reads {}..{} of {} on axis {}", starts[i], last, x.shape[i], i);
  }
  return {x.type, shape};
}

TensorInfo infer_concat(const Node& node, const Infos& inputs) {
  need_one_type(inputs, 0);
  const auto axis = static_cast<size_t>(node.integer("axis"));
  TensorInfo out = inputs.at(0);
  for (size_t i = 1; i < inputs.size(); ++i) {
    bool fits = inputs[i].shape.size() == out.shape.size();
    for (size_t d = 0; fits && d < out.shape.size(); ++d)
      fits = d == axis || inputs[i].shape[d] == out.shape[d];
    if (!fits)
      fail_shape(
          fmt::format("input {} is {}; all extents but axis {} must equal those of input 0, {}", i,
                      shape_text(inputs[i].shape), axis, shape_text(inputs[0].shape)));
    out.shape[axis] += inputs[i].shape[axis];
  }
  return out;
}

/// pads: all begins, then all ends; negative ones crop.
TensorInfo infer_pad(const Node& node, const Infos& inputs) {
  TensorInfo out = inputs.at(0);
  const std::vector<int64_t>& pads = node.integers("pads");
  const size_t rank = out.shape.size();
  TENON_CHECK(pads.size() == 2 * rank, "{} pads for rank {}", pads.size(), rank);
  const std::string& mode = node.text("mode");
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = out.shape[d], most = std::max(pads[d], pads[d + rank]);
    if ((mode == "reflect" && most > 0 && most > extent - 1) ||
        (mode == "edge" && most > 0 && extent == 0))
      fail_shape(fmt::format("{} padding by {} needs more than the {} elements of axis {}", mode,
                             most, extent, d));
    if (__builtin_add_overflow(out.shape[d], pads[d], &out.shape[d]) ||
        __builtin_add_overflow(out.shape[d], pads[d + rank], &out.shape[d]) || out.shape[d] < 0)
      fail_shape(fmt::format("pads {} and {} leave axis {} of extent {} without a legal extent",
                             pads[d], pads[d + rank], d, extent));
  }
  return out;
}

TensorInfo infer_expand(const Node& node, const Infos& inputs) {
  const std::vector<int64_t>& shape = node.integers("shape");
  if (broadcast_shapes(inputs.at(0).shape, shape) != shape)
    fail_shape(fmt::format("shape {} does not broadcast to {}", shape_text(inputs[0].shape),
                           shape_text(shape)));
  return {inputs[0].type, shape};
}

TensorInfo infer_gather(const Node& node, const Infos& inputs) {
  const TensorInfo &data = inputs.at(0), &indices = inputs.at(1);
  const auto axis = static_cast<size_t>(node.integer("axis"));
  need_index(indices);
  std::vector<int64_t> shape(data.shape.begin(), data.shape.begin() + static_cast<ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + static_cast<ptrdiff_t>(axis) + 1,
               data.shape.end());
  return {data.type, shape};
}

TensorInfo infer_gather_elements(const Node& node, const Infos& inputs) {
  const TensorInfo &data = inputs.at(0), &indices = inputs.at(1);
  need_index(indices);
  const auto axis = static_cast<size_t>(node.integer("axis"));
  bool fits = indices.shape.size() == data.shape.size();
  for (size_t d = 0; fits && d < data.shape.size(); ++d)
    fits = d == axis || indices.shape[d] <= data.shape[d];
  if (!fits)
    fail_shape(fmt::format("indices {} do not fit into {} but for axis {}",
                           shape_text(indices.shape), shape_text(data.shape), axis));
  return {data.type, indices.shape};
}

/// The last axis of the indices counts positions in the first axes of the data behind `batch`
/// common ones.
TensorInfo infer_gather_nd(const Node& node, const Infos& inputs) {
  const TensorInfo &data = inputs.at(0), &indices = inputs.at(1);
  need_index(indices);
  const int64_t batch = node.integer("batch"), rank = static_cast<int64_t>(data.shape.size());
  const auto index_rank = static_cast<int64_t>(indices.shape.size());
  bool fits = index_rank >= 1 && batch >= 0 && batch < index_rank && batch <= rank &&
              indices.shape.back() >= 1 && batch + indices.shape.back() <= rank;
  for (int64_t d = 0; fits && d < batch; ++d)
    fits = data.shape[static_cast<size_t>(d)] == indices.shape[static_cast<size_t>(d)];
  if (!fits)
    fail_shape(fmt::format("indices {} do not fit data {} with {} batch axes",
                           shape_text(indices.shape), shape_text(data.shape), batch));
  std::vector<int64_t> shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(),
               data.shape.begin() + static_cast<ptrdiff_t>(batch + indices.shape.back()),
               data.shape.end());
  return {data.type, shape};
}

TensorInfo infer_depth_to_space(const Node& node, const Infos& inputs) {
  const std::vector<int64_t>& x = inputs.at(0).shape;
  const int64_t b = node.integer("block");
  return {inputs[0].type, {x[0], x[1] / (b * b), x[2] * b, x[3] * b}};
}

TensorInfo infer_space_to_depth(const Node& node, const Infos& inputs) {
  const std::vector<int64_t>& x = inputs.at(0).shape;
  const int64_t b = node.integer("block");
  return {inputs[0].type, {x[0], x[1] * b * b, x[2] / b, x[3] / b}};
}

TensorInfo infer_tile(const Node& node, const Infos& inputs) {
  TensorInfo out = inputs.at(0);
  for (size_t d = 0; d < out.shape.size(); ++d)
    if (__builtin_mul_overflow(out.shape[d], node.integers("repeats")[d], &out.shape[d]))
      fail_shape("the result is too large");
  return out;
}

/// start + i * step for i < count, both rank 0.
TensorInfo infer_iota(const Node& node, const Infos& inputs) {
  return {inputs.at(0).type, {node.integer("count")}};
}

}  // namespace tenon
