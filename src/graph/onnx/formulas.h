#pragma once
#include "graph/onnx/operators.h"

namespace tenon {

// How canonical operators are written with kernels/. Elements: one value from one value of each
// input.

using Exprs = std::vector<Expr>;
using Tensors = std::vector<Tensor>;

Expr unary_element(const Node&, const Exprs&);   // by the row's kernel word
Expr binary_element(const Node&, const Exprs&);  // by the row's kernel word
Expr where_element(const Node&, const Exprs&);
Expr cast_element(const Node&, const Exprs&);
Expr bit_cast_element(const Node&, const Exprs&);
Expr batch_norm_element(const Node&, const Exprs&);

Tensor arg_formula(const Node&, const Tensors&, const std::string& name);
Tensor average_pool_formula(const Node&, const Tensors&, const std::string& name);
Tensor block_channels_formula(const Node&, const Tensors&, const std::string& name);
Tensor blocked_conv_formula(const Node&, const Tensors&, const std::string& name);
Tensor blocked_conv_transpose_formula(const Node&, const Tensors&, const std::string& name);
Tensor winograd_conv_formula(const Node&, const Tensors&, const std::string& name);
Tensor winograd_weights_formula(const Node&, const Tensors&, const std::string& name);
Tensor concat_formula(const Node&, const Tensors&, const std::string& name);
Tensor conv_formula(const Node&, const Tensors&, const std::string& name);
Tensor conv_transpose_formula(const Node&, const Tensors&, const std::string& name);
Tensor cumulative_sum_formula(const Node&, const Tensors&, const std::string& name);
Tensor depth_to_space_formula(const Node&, const Tensors&, const std::string& name);
Tensor expand_formula(const Node&, const Tensors&, const std::string& name);
Tensor gather_elements_formula(const Node&, const Tensors&, const std::string& name);
Tensor gather_formula(const Node&, const Tensors&, const std::string& name);
Tensor gather_nd_formula(const Node&, const Tensors&, const std::string& name);
Tensor instance_norm_formula(const Node&, const Tensors&, const std::string& name);
Tensor iota_formula(const Node&, const Tensors&, const std::string& name);
Tensor layer_norm_formula(const Node&, const Tensors&, const std::string& name);
Tensor log_softmax_formula(const Node&, const Tensors&, const std::string& name);
Tensor lp_pool_formula(const Node&, const Tensors&, const std::string& name);
Tensor lrn_formula(const Node&, const Tensors&, const std::string& name);
Tensor matmul_formula(const Node&, const Tensors&, const std::string& name);
Tensor max_pool_formula(const Node&, const Tensors&, const std::string& name);
Tensor pad_formula(const Node&, const Tensors&, const std::string& name);
Tensor reduce_formula(const Node&, const Tensors&, const std::string& name);
Tensor reshape_formula(const Node&, const Tensors&, const std::string& name);
Tensor slice_formula(const Node&, const Tensors&, const std::string& name);
Tensor softmax_formula(const Node&, const Tensors&, const std::string& name);
Tensor space_to_depth_formula(const Node&, const Tensors&, const std::string& name);
Tensor tile_formula(const Node&, const Tensors&, const std::string& name);
Tensor transpose_formula(const Node&, const Tensors&, const std::string& name);
Tensor unblock_channels_formula(const Node&, const Tensors&, const std::string& name);
Tensor triangle_formula(const Node&, const Tensors&, const std::string& name);

}  // namespace tenon
