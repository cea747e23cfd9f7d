#pragma once
#include <tenon/te/te.h>

#include "kernels/conv.h"

namespace tenon {

// Winograd's convolution F(m x m, 3 x 3): 3x3 kernels, stride 1, m = 2 or 4 (Lavin and Gray 2016,
// arXiv:1509.09308). Per tile of m x m pixels and pair of channels it multiplies (m + 2)^2 times,
// where the direct sum does 9 m^2 times: 2.25 and 4 times fewer.
//
//   U = G w G'    V = B' x B    M = sum over channels of U * V    y = A' M A
//
// It is another algorithm than conv: sums are reordered and differences of inputs are taken, so
// results differ by up to winograd_error_bound(), and an Inf or NaN of the input makes NaN of all
// pixels of the tiles that read it.

/// U[m+2, m+2, ceil(c_out/block), c_in, block] of the weights w[c_out, c_in, 3, 3]; lanes past
/// c_out are 0. UserError for: another kernel, m other than 2 and 4, a type other than f32 and f64.
Tensor winograd_weights(const Tensor& w, int64_t m, int64_t block,
                        const std::string& name = "winograd_weights");

/// Convolution by transformed weights on activations in blocks of channels:
/// x[n, ceil(c_in/block), h, w, block] with u as above and bias[c_out] (may be undefined) ->
/// [n, ceil(c_out/block), oh, ow, block], as conv2d_blocked. Of the options pads count; strides,
/// dilations and groups are 1. UserError for shapes that do not fit.
Tensor conv2d_winograd(const Tensor& x, const Tensor& u, const Tensor& bias,
                       const ConvOptions& options, int64_t c_out,
                       const std::string& name = "conv2d_winograd");

/// The most by which an element of conv2d_winograd on winograd_weights differs from the exact one,
/// divided by max|x| * max|w|: (c_in + s) * eps/2 * c_in * a^2, to first order, where s counts the
/// roundings of the transforms and a = max over p of sum over k of |A'[p,k]| |G[k]|_1 |B'[k]|_1
/// (8 for m = 2, 48 for m = 4). The direct sum has (9 c_in) * eps/2 * 9 c_in. Errors add up like a
/// random walk, so that what is seen is far below.
double winograd_error_bound(int64_t m, int64_t c_in, DType type);

/// The m (2 or 4) of the fastest Winograd convolution over oh x ow pixels, by the multiplications,
/// the transforms, and the weights that come from beyond the second cache; 0 where the direct one
/// is estimated to be as fast.
int64_t winograd_tile(int64_t c_in, int64_t c_out, int64_t oh, int64_t ow);

/// Multiplications per pixel and pair of channels, tiles at the borders counted whole: what decides
/// between m = 2 and m = 4.
double winograd_products(int64_t m, int64_t oh, int64_t ow);

}  // namespace tenon
