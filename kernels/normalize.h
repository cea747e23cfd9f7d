#pragma once
#include <tenon/te/te.h>

namespace tenon {

/// (x - mean) / sqrt(variance + epsilon) * scale + bias, channel 1 of x[n, c, ...]; the four
/// tensors have c elements. name.scale and name.shift hold one number a channel, so that x is
/// touched by one multiply and one add.
Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean,
                  const Tensor& variance, double epsilon, const std::string& name = "batch_norm");

struct LayerNorm {
  Tensor result, mean,
      inverse_deviation;  // the last two keep the normalised dimensions with extent 1
};
/// Over the dimensions from `axis` to the last, in two passes (mean, then squared differences);
/// scale and bias (may be undefined) broadcast to x. f16 and bf16 in f32.
LayerNorm layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis,
                     double epsilon, const std::string& name = "layer_norm");

/// Over the spatial dimensions of each image and channel; scale and bias have c elements.
Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, double epsilon,
                     const std::string& name = "instance_norm");

/// Local response normalisation across `size` neighbouring channels, as ONNX LRN.
Tensor lrn(const Tensor& x, int64_t size, double alpha, double beta, double bias,
           const std::string& name = "lrn");

}  // namespace tenon
