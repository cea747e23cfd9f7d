#pragma once
#include "graph/onnx/operators.h"

namespace tenon {

// Type and shape of a canonical operator's output. `fail_shape` throws the UserError; the caller
// adds the node.

using Infos = std::vector<TensorInfo>;

[[noreturn]] void fail_shape(const std::string& rule);

TensorInfo infer_same(const Node&, const Infos&);        // as the first input
TensorInfo infer_same_float(const Node&, const Infos&);  // the same, floats only

// pointwise: all inputs broadcast together and have one type, but for conditions
TensorInfo infer_pointwise(const Node&, const Infos&);
TensorInfo infer_comparison(const Node&, const Infos&);  // bool
TensorInfo infer_where(const Node&, const Infos&);
TensorInfo infer_cast(const Node&, const Infos&);

// movers
TensorInfo infer_concat(const Node&, const Infos&);
TensorInfo infer_depth_to_space(const Node&, const Infos&);
TensorInfo infer_expand(const Node&, const Infos&);
TensorInfo infer_gather(const Node&, const Infos&);
TensorInfo infer_gather_elements(const Node&, const Infos&);
TensorInfo infer_gather_nd(const Node&, const Infos&);
TensorInfo infer_iota(const Node&, const Infos&);
TensorInfo infer_pad(const Node&, const Infos&);
TensorInfo infer_reshape(const Node&, const Infos&);
TensorInfo infer_slice(const Node&, const Infos&);
TensorInfo infer_space_to_depth(const Node&, const Infos&);
TensorInfo infer_tile(const Node&, const Infos&);
TensorInfo infer_transpose(const Node&, const Infos&);

// reductions and linear operators
TensorInfo infer_arg(const Node&, const Infos&);
TensorInfo infer_reduce(const Node&, const Infos&);
TensorInfo infer_pool(const Node&, const Infos&);
TensorInfo infer_matmul(const Node&, const Infos&);
TensorInfo infer_conv(const Node&, const Infos&);
TensorInfo infer_conv_transpose(const Node&, const Infos&);

}  // namespace tenon
