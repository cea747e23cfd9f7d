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
void resolve_is_inf(Resolver&);
void resolve_cast(Resolver&);
void resolve_cast_like(Resolver&);
void resolve_where(Resolver&);
std::string refuse_cast(const Node&, int64_t opset);

void resolve_numbers(Resolver&);  // the same name, attributes alpha and beta as they are
void resolve_prelu(Resolver&);
void resolve_selu(Resolver&);
void resolve_shrink(Resolver&);
void resolve_gelu(Resolver&);
void resolve_swiglu(Resolver&);
void resolve_bit_cast(Resolver&);
std::string refuse_bit_cast(const Node&, int64_t opset);

// rules_one_hot.cpp
void resolve_one_hot(Resolver&);
void resolve_hardmax(Resolver&);
void resolve_eye_like(Resolver&);
std::string refuse_eye_like(const Node&, int64_t opset);

// rules_loss.cpp
void resolve_likelihood_loss(Resolver&);
void resolve_cross_entropy_loss(Resolver&);

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
void resolve_gather_nd(Resolver&);
void resolve_trilu(Resolver&);
void resolve_depth_to_space(Resolver&);
void resolve_space_to_depth(Resolver&);
std::string refuse_pad(const Node&, int64_t opset);

// rules_reduce.cpp
void resolve_reduce(Resolver&);
void resolve_arg(Resolver&);
void resolve_cumulative_sum(Resolver&);
void resolve_global_average_pool(Resolver&);
void resolve_global_max_pool(Resolver&);
void resolve_softmax(Resolver&);  // LogSoftmax too

// rules_normalise.cpp
void resolve_batch_norm(Resolver&);
void resolve_instance_norm(Resolver&);
void resolve_layer_norm(Resolver&);
void resolve_lrn(Resolver&);
void resolve_rms_norm(Resolver&);
void resolve_group_norm(Resolver&);
void resolve_lp_norm(Resolver&);
void resolve_mean_variance_norm(Resolver&);
std::string refuse_batch_norm(const Node&, int64_t opset);
std::string refuse_layer_norm(const Node&, int64_t opset);

// rules_linear.cpp
void resolve_matmul(Resolver&);
void resolve_gemm(Resolver&);
void resolve_conv(Resolver&);
void resolve_conv_transpose(Resolver&);
void resolve_max_pool(Resolver&);
void resolve_average_pool(Resolver&);
void resolve_lp_pool(Resolver&);
std::string refuse_max_pool(const Node&, int64_t opset);

}  // namespace tenon
