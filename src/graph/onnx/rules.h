#pragma once
#include <string>

#include "graph/onnx/resolver.h"

namespace tenon {

// How each ONNX operator is written in canonical ones. Attributes come with their defaults filled
// in.

// rules_pointwise.cpp
void resolve_same(Resolver&);  // the canonical operator of the same name, no attributes
void resolve_binary(
    Resolver&);  // the same with broadcasting, also the explicit one ahead of opset 7
void resolve_variadic(Resolver&);  // Max, Min: a chain of binary ones
void resolve_sum(Resolver&);
void resolve_mean(Resolver&);
void resolve_clip(Resolver&);
void resolve_pow(Resolver&);
void resolve_mod(Resolver&);
void resolve_bit(Resolver&);  // BitwiseAnd -> BitAnd, ...
void resolve_bit_shift(Resolver&);
void resolve_reciprocal(Resolver&);
void resolve_sign(Resolver&);
void resolve_is_inf(Resolver&);
void resolve_cast(Resolver&);
void resolve_cast_like(Resolver&);
void resolve_where(Resolver&);
std::string refuse_cast(const Node&, int64_t opset);

// rules_activation.cpp
void resolve_relu(Resolver&);
void resolve_leaky_relu(Resolver&);
void resolve_prelu(Resolver&);
void resolve_thresholded_relu(Resolver&);
void resolve_elu(Resolver&);
void resolve_selu(Resolver&);
void resolve_celu(Resolver&);
void resolve_hard_sigmoid(Resolver&);
void resolve_hard_swish(Resolver&);
void resolve_swish(Resolver&);
void resolve_gelu(Resolver&);
void resolve_mish(Resolver&);
void resolve_softplus(Resolver&);
void resolve_softsign(Resolver&);
void resolve_shrink(Resolver&);

// rules_shape.cpp
void resolve_shape(Resolver&);
void resolve_size(Resolver&);
void resolve_reshape(Resolver&);
void resolve_flatten(Resolver&);
void resolve_squeeze(Resolver&);
void resolve_unsqueeze(Resolver&);
void resolve_identity(Resolver&);
void resolve_dropout(Resolver&);
void resolve_expand(Resolver&);
void resolve_tile(Resolver&);
void resolve_constant(Resolver&);
void resolve_constant_of_shape(Resolver&);
std::string refuse_constant(const Node&, int64_t opset);
std::string refuse_constant_of_shape(const Node&, int64_t opset);
void resolve_range(Resolver&);

// rules_move.cpp
void resolve_transpose(Resolver&);
void resolve_concat(Resolver&);
void resolve_split(Resolver&);
void resolve_slice(Resolver&);
void resolve_pad(Resolver&);
void resolve_gather(Resolver&);
void resolve_depth_to_space(Resolver&);
void resolve_space_to_depth(Resolver&);
std::string refuse_pad(const Node&, int64_t opset);

// rules_reduce.cpp
void resolve_reduce(Resolver&);  // ReduceSum, ReduceMax, ReduceMin, ReduceProd
void resolve_reduce_mean(Resolver&);
void resolve_reduce_l1(Resolver&);
void resolve_reduce_l2(Resolver&);
void resolve_reduce_sum_square(Resolver&);
void resolve_reduce_log_sum(Resolver&);
void resolve_reduce_log_sum_exp(Resolver&);
void resolve_global_average_pool(Resolver&);
void resolve_global_max_pool(Resolver&);
void resolve_softmax(Resolver&);
void resolve_log_softmax(Resolver&);

// rules_normalise.cpp
void resolve_batch_norm(Resolver&);
void resolve_instance_norm(Resolver&);
void resolve_layer_norm(Resolver&);
void resolve_lrn(Resolver&);
std::string refuse_batch_norm(const Node&, int64_t opset);
std::string refuse_layer_norm(const Node&, int64_t opset);

// rules_linear.cpp
void resolve_matmul(Resolver&);
void resolve_gemm(Resolver&);
void resolve_conv(Resolver&);
void resolve_conv_transpose(Resolver&);
void resolve_max_pool(Resolver&);
void resolve_average_pool(Resolver&);
std::string refuse_max_pool(const Node&, int64_t opset);

}  // namespace tenon
