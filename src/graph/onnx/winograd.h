#pragma once
#include "graph/onnx/operators.h"
#include "graph/onnx/shape_rules.h"

namespace tenon {

// Convolutions of 3 x 3 at stride 1 by Winograd's algorithm (kernels/winograd.h), on channels in
// blocks.

TensorInfo infer_winograd_conv(const Node&, const Infos&);
TensorInfo infer_winograd_weights(const Node&, const Infos&);

/// Of a BlockedConv on f32 activations in blocks; nothing for other kernels, strides, dilations or
/// groups, and where the direct sum is estimated to be as fast.
std::optional<TransformedForm> winograd_form(const Node& node, const Infos& in);

}  // namespace tenon
