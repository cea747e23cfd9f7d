#pragma once
#include "graph/onnx/operators.h"

namespace tenon {

// Which axis of a linear operator's weights its output channels are, and which canonical nodes are
// affine maps per channel: what lets a scale and shift be folded into weights without knowing an
// operator's name.

std::optional<LinearShape> conv_linear(const Node&, const std::vector<TensorInfo>&);
std::optional<LinearShape> conv_transpose_linear(const Node&, const std::vector<TensorInfo>&);
std::optional<LinearShape> matmul_linear(const Node&, const std::vector<TensorInfo>&);

std::optional<ChannelAffine> add_affine(const Graph&, const Node&, int axis, int64_t channels);
std::optional<ChannelAffine> sub_affine(const Graph&, const Node&, int axis, int64_t channels);
std::optional<ChannelAffine> mul_affine(const Graph&, const Node&, int axis, int64_t channels);
std::optional<ChannelAffine> div_affine(const Graph&, const Node&, int axis, int64_t channels);
std::optional<ChannelAffine> batch_norm_affine(const Graph&, const Node&, int axis,
                                               int64_t channels);

}  // namespace tenon
