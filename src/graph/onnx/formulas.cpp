#include "graph/onnx/formulas.h"

#include <tenon/support/error.h>

#include "kernels/axes.h"
#include "kernels/conv.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/movers.h"
#include "kernels/normalize.h"
#include "kernels/pad.h"
#include "kernels/pool.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "kernels/winograd.h"

namespace tenon {

namespace {

OpNumbers numbers_of(const Node& node) {
  OpNumbers numbers;
  for (const auto& [name, attribute] : node.attributes) {
    if (name == "alpha") numbers.alpha = std::get<double>(attribute);
    if (name == "beta") numbers.beta = std::get<double>(attribute);
    if (name == "approximate") numbers.approximate = std::get<int64_t>(attribute) != 0;
    if (name == "fmod") numbers.fmod = std::get<int64_t>(attribute) != 0;
  }
  return numbers;
}

std::vector<int64_t> half(const std::vector<int64_t>& pads, bool ends) {
  const auto middle = pads.begin() + static_cast<ptrdiff_t>(pads.size() / 2);
  return ends ? std::vector<int64_t>(middle, pads.end())
              : std::vector<int64_t>(pads.begin(), middle);
}

ConvOptions conv_options(const Node& node) {
  return {node.integers("strides"), node.integers("dilations"), half(node.integers("pads"), false),
          half(node.integers("pads"), true), node.integer("group")};
}

/// By how much the output that the node says is longer than what its inputs reach.
std::vector<int64_t> output_padding(const Node& node, const Tensor& x, const Tensor& w) {
  const ConvOptions options = conv_options(node);
  std::vector<int64_t> padding;
  for (size_t d = 0; d < options.strides.size(); ++d) {
    const int64_t kernel = w.extent(static_cast<int>(d) + 2),
                  extent = x.extent(static_cast<int>(d) + 2);
    const int64_t reached =
        options.strides[d] * (extent - 1) + options.dilations[d] * (kernel - 1) + 1;
    padding.push_back(node.integers("output")[d] -
                      (reached - options.pads_begin[d] - options.pads_end[d]));
  }
  return padding;
}

PoolOptions pool_options(const Node& node) {
  return {node.integers("kernel"),
          node.integers("strides"),
          node.integers("dilations"),
          half(node.integers("pads"), false),
          half(node.integers("pads"), true),
          node.integer("ceil_mode") != 0,
          node.integer("count_include_pad") != 0};
}

PadMode pad_mode(const std::string& mode) {
  if (mode == "constant") return PadMode::constant;
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::edge;
  TENON_CHECK(mode == "wrap", "pad mode {}", mode);
  return PadMode::wrap;
}

}  // namespace

Expr unary_element(const Node& node, const Exprs& in) {
  return unary_expr(operator_of(node).kernel, in.at(0), numbers_of(node), node.name);
}

Expr binary_element(const Node& node, const Exprs& in) {
  return binary_expr(operator_of(node).kernel, in.at(0), in.at(1), numbers_of(node), node.name);
}

Expr where_element(const Node&, const Exprs& in) { return select(in.at(0), in.at(1), in.at(2)); }

Expr cast_element(const Node& node, const Exprs& in) { return as_type(node.dtype("to"), in.at(0)); }

Expr bit_cast_element(const Node& node, const Exprs& in) {
  return bitcast(node.dtype("to"), in.at(0));
}

/// The parameters are shaped to broadcast along the channels.
Expr batch_norm_element(const Node& node, const Exprs& in) {
  const Expr deviation = sqrt(in.at(4) + imm(node.real("epsilon"), in[4].dtype()));
  return (in[0] - in[3]) * (in[1] / deviation) + in[2];
}

Tensor arg_formula(const Node& node, const Tensors& in, const std::string& name) {
  return arg_reduce(operator_of(node).kernel == "argmax", in.at(0), node.integer("axis"),
                    node.integer("keepdims") != 0, node.integer("last") != 0, name);
}

Tensor average_pool_formula(const Node& node, const Tensors& in, const std::string& name) {
  return average_pool(in.at(0), pool_options(node), name);
}

Tensor block_channels_formula(const Node& node, const Tensors& in, const std::string& name) {
  return block_channels(in.at(0), node.integer("block"), name);
}

Tensor blocked_conv_formula(const Node& node, const Tensors& in, const std::string& name) {
  const auto form = in.at(1).rank() == 3 ? conv1d_blocked : conv2d_blocked;
  return form(in.at(0), in[1], {}, conv_options(node), node.integer("block"), name);
}

Tensor winograd_conv_formula(const Node& node, const Tensors& in, const std::string& name) {
  const std::vector<int64_t>& pads = node.integers("pads");
  const ConvOptions options{.pads_begin = {pads[0], pads[1]}, .pads_end = {pads[2], pads[3]}};
  return conv2d_winograd(in.at(0), in.at(1), {}, options, node.integer("channels"), name);
}

Tensor winograd_weights_formula(const Node& node, const Tensors& in, const std::string& name) {
  return winograd_weights(in.at(0), node.integer("tile"), node.integer("block"), name);
}

Tensor concat_formula(const Node& node, const Tensors& in, const std::string& name) {
  return concat(in, node.integer("axis"), name);
}

Tensor conv_formula(const Node& node, const Tensors& in, const std::string& name) {
  return conv(in.at(0), in.at(1), {}, conv_options(node), name);
}

/// The output's extents are an attribute; what the pads leave open is padding at its end.
Tensor conv_transpose_formula(const Node& node, const Tensors& in, const std::string& name) {
  return conv_transpose(in.at(0), in.at(1), {}, conv_options(node),
                        output_padding(node, in[0], in[1]), name);
}

Tensor blocked_conv_transpose_formula(const Node& node, const Tensors& in,
                                      const std::string& name) {
  return conv2d_transpose_blocked(in.at(0), in.at(1), {}, conv_options(node),
                                  output_padding(node, in[0], in[1]), node.integer("block"), name);
}

Tensor cumulative_sum_formula(const Node& node, const Tensors& in, const std::string& name) {
  return cumulative_sum(in.at(0), node.integer("axis"), node.integer("exclusive") != 0,
                        node.integer("reverse") != 0, name);
}

Tensor depth_to_space_formula(const Node& node, const Tensors& in, const std::string& name) {
  return depth_to_space(in.at(0), node.integer("block"), node.integer("depth_first") != 0, name);
}

Tensor expand_formula(const Node& node, const Tensors& in, const std::string& name) {
  return expand(in.at(0), node.integers("shape"), name);
}

Tensor gather_elements_formula(const Node& node, const Tensors& in, const std::string& name) {
  return gather_elements(in.at(0), in.at(1), node.integer("axis"), name);
}

Tensor gather_formula(const Node& node, const Tensors& in, const std::string& name) {
  return gather(in.at(0), in.at(1), node.integer("axis"), name);
}

Tensor gather_nd_formula(const Node& node, const Tensors& in, const std::string& name) {
  return gather_nd(in.at(0), in.at(1), node.integer("batch"), name);
}

Tensor instance_norm_formula(const Node& node, const Tensors& in, const std::string& name) {
  return instance_norm(in.at(0), in.at(1), in.at(2), node.real("epsilon"), name);
}

/// name[i] = start + i * step
Tensor iota_formula(const Node& node, const Tensors& in, const std::string& name) {
  const Axis i("i", node.integer("count"));
  const DType type = in.at(0).dtype();
  return compute(name, {i}, in[0]() + as_type(type, i.var) * in.at(1)());
}

Tensor layer_norm_formula(const Node& node, const Tensors& in, const std::string& name) {
  return layer_norm(in.at(0), in.at(1), in.size() > 2 ? in[2] : Tensor(), node.integer("axis"),
                    node.real("epsilon"), name)
      .result;
}

Tensor log_softmax_formula(const Node& node, const Tensors& in, const std::string& name) {
  return log_softmax(in.at(0), node.integer("axis"), name);
}

Tensor lp_pool_formula(const Node& node, const Tensors& in, const std::string& name) {
  return lp_pool(in.at(0), pool_options(node), node.integer("p"), name);
}

Tensor lrn_formula(const Node& node, const Tensors& in, const std::string& name) {
  return lrn(in.at(0), node.integer("size"), node.real("alpha"), node.real("beta"),
             node.real("bias"), name);
}

Tensor matmul_formula(const Node&, const Tensors& in, const std::string& name) {
  return matmul(in.at(0), in.at(1), name);
}

Tensor max_pool_formula(const Node& node, const Tensors& in, const std::string& name) {
  return max_pool(in.at(0), pool_options(node), name);
}

Tensor pad_formula(const Node& node, const Tensors& in, const std::string& name) {
  const std::vector<int64_t>& pads = node.integers("pads");
  return pad(in.at(0), half(pads, false), half(pads, true), pad_mode(node.text("mode")), in.at(1)(),
             name);
}

Tensor reduce_formula(const Node& node, const Tensors& in, const std::string& name) {
  return reduce(operator_of(node).kernel, in.at(0), node.integers("axes"),
                node.integer("keepdims") != 0, name);
}

Tensor reshape_formula(const Node& node, const Tensors& in, const std::string& name) {
  return reshape(in.at(0), node.integers("shape"), name);
}

Tensor slice_formula(const Node& node, const Tensors& in, const std::string& name) {
  return slice(in.at(0), node.integers("starts"), node.integers("steps"), node.integers("shape"),
               name);
}

Tensor softmax_formula(const Node& node, const Tensors& in, const std::string& name) {
  return softmax(in.at(0), node.integer("axis"), name);
}

Tensor space_to_depth_formula(const Node& node, const Tensors& in, const std::string& name) {
  return space_to_depth(in.at(0), node.integer("block"), name);
}

Tensor tile_formula(const Node& node, const Tensors& in, const std::string& name) {
  return tile(in.at(0), node.integers("repeats"), name);
}

Tensor transpose_formula(const Node& node, const Tensors& in, const std::string& name) {
  return transpose(in.at(0), node.integers("perm"), name);
}

Tensor triangle_formula(const Node& node, const Tensors& in, const std::string& name) {
  return triangle(in.at(0), node.integer("diagonal"), node.integer("upper") != 0, name);
}

Tensor node_formula(const Node& node, const std::vector<Tensor>& inputs, const std::string& name) {
  const Operator& row = operator_of(node);
  if (row.formula) return row.formula(node, inputs, name);
  std::vector<int64_t> shape;
  for (const Tensor& input : inputs) shape = broadcast_shape(name, shape, input.extents());
  const std::vector<Axis> axes = axes_over(shape);
  std::vector<Expr> elements;
  for (const Tensor& input : inputs) elements.push_back(broadcast_read(input, indices_of(axes)));
  return compute(name, axes, row.element(node, elements));
}

Tensor unblock_channels_formula(const Node& node, const Tensors& in, const std::string& name) {
  return unblock_channels(in.at(0), node.integer("channels"), name);
}

}  // namespace tenon
