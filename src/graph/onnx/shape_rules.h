#pragma once
#include "graph/onnx/operators.h"

namespace tenon {

// Type and shape of a canonical operator's output. `fail_shape` throws the UserError; the caller
// adds the node.

using Infos = std::vector<TensorInfo>;

[[noreturn]] void fail_shape(const std::string& rule);

// pointwise: all inputs broadcast together
TensorInfo infer_pointwise(const Node&, const Infos&);  // type of the first input, all the same
TensorInfo infer_float_pointwise(const Node&, const Infos&);  // the same, floats only
TensorInfo infer_comparison(const Node&, const Infos&);       // bool
TensorInfo infer_logical(const Node&, const Infos&);          // bool from bools
TensorInfo infer_where(const Node&, const Infos&);
TensorInfo infer_cast(const Node&, const Infos&);

// movers
TensorInfo infer_reshape(const Node&, const Infos&);
TensorInfo infer_transpose(const Node&, const Infos&);
TensorInfo infer_slice(const Node&, const Infos&);
TensorInfo infer_concat(const Node&, const Infos&);
TensorInfo infer_pad(const Node&, const Infos&);
TensorInfo infer_expand(const Node&, const Infos&);
TensorInfo infer_gather(const Node&, const Infos&);
TensorInfo infer_iota(const Node&, const Infos&);

// reductions and linear operators
TensorInfo infer_reduce(const Node&, const Infos&);
TensorInfo infer_softmax(const Node&, const Infos&);
TensorInfo infer_pool(const Node&, const Infos&);
TensorInfo infer_batch_norm(const Node&, const Infos&);
TensorInfo infer_matmul(const Node&, const Infos&);
TensorInfo infer_conv(const Node&, const Infos&);
TensorInfo infer_conv_transpose(const Node&, const Infos&);

}  // namespace tenon
