#pragma once
#include <tenon/te/te.h>

namespace tenon {

/// One number per spatial dimension; empty means all 1 (strides, dilations) or all 0 (pads).
struct ConvOptions {
  std::vector<int64_t> strides, dilations;
  std::vector<int64_t> pads_begin, pads_end;
  int64_t groups = 1;
};

/// Extent of a sliding window's result: floor((extent + pads - dilation*(kernel-1) - 1) / stride) +
/// 1, at least 0.
int64_t window_extent(int64_t extent, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t pads);

/// Convolution over 1 to 3 spatial dimensions, as ONNX Conv:
/// x[n, c_in, d...] * w[c_out, c_in/groups, k...] (+ bias[c_out], may be undefined) -> [n, c_out,
/// o...]. The padded input is a stage of its own, name.pad; the bias is the start of the sum.
/// Kernel dimensions of extent 1 have no axis. UserError for: ranks, types, channel counts that do
/// not fit the groups, a stride or dilation below 1.
Tensor conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options = {},
            const std::string& name = "conv");

/// Two-dimensional convolution on activations in blocks of channels, the layout that keeps a
/// register tile of pixels x channel blocks fed by whole vectors (`block`: the target's lanes):
/// x[n, ceil(c_in/block), h, w, block], or plain x[n, c_in, h, w] for a first layer of few
/// channels, with the plain w[c_out, c_in/groups, kh, kw] (schedules pack it) and bias[c_out] (may
/// be undefined) -> [n, ceil(c_out/block), oh, ow, block]. Lanes past c_in are not read, lanes past
/// c_out are 0. What lies outside of the image does not count: there is no padded copy. UserError
/// as for conv, and for an x that does not hold the channels.
Tensor conv2d_blocked(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const ConvOptions& options, int64_t block,
                      const std::string& name = "conv2d_blocked");

/// The same over one spatial dimension: x[n, ceil(c_in/block), w, block] or x[n, c_in, w], with
/// w[c_out, c_in/groups, k] -> [n, ceil(c_out/block), ow, block].
Tensor conv1d_blocked(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const ConvOptions& options, int64_t block,
                      const std::string& name = "conv1d_blocked");

/// conv2d_blocked, without groups and bias, of narrow numbers whose sums stay wide:
/// x[n, ceil(c_in/block), h, w, block] with w[c_out, c_in, kh, kw] -> wide_type[n,
/// ceil(c_out/block), oh, ow, block]. x and w may differ in type. Instructions that add up groups
/// of channels take whole windows, so x gets its zeros in a copy, name.pad. Where c_in fills its
/// blocks and these are 64 bytes or a multiple, products run in whole tiles. UserError as for
/// conv2d_blocked, and for groups or types that are not summed in one.
Tensor conv2d_wide(const Tensor& x, const Tensor& w, const ConvOptions& options, int64_t block,
                   const std::string& name = "conv2d_wide");

/// The transpose of a convolution on channels in blocks, without groups:
/// x[n, ceil(c_in/block), h, w, block] with w[c_in, c_out, kh, kw] ->
/// [n, ceil(c_out/block), oh, ow, block], oh = stride*(h-1) + output_padding + dilation*(k-1) + 1 -
/// pads. The pixels that lie alike between the steps of the stride, stride x stride kinds, are
/// direct convolutions of their own, with every stride-th tap: name.kinds. UserError as for
/// conv_transpose, and for groups or dilations other than 1.
Tensor conv2d_transpose_blocked(const Tensor& x, const Tensor& w, const Tensor& bias,
                                const ConvOptions& options,
                                const std::vector<int64_t>& output_padding, int64_t block,
                                const std::string& name = "conv2d_transpose_blocked");

/// The transpose of conv, as ONNX ConvTranspose: x[n, c_in, d...] with w[c_in, c_out/groups, k...]
/// -> [n, c_out, o...] where o = stride*(d-1) + output_padding + dilation*(k-1) + 1 - pads. Written
/// as a gather: each output element sums the inputs that reach it.
Tensor conv_transpose(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const ConvOptions& options, const std::vector<int64_t>& output_padding,
                      const std::string& name = "conv_transpose");

}  // namespace tenon
