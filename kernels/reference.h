#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/conv.h"
#include "kernels/pad.h"
#include "kernels/pool.h"

namespace tenon {

// Plain loops over doubles, written without the compiler: the independent oracle for small shapes.
// Numbers that a narrower type would round are not rounded here; compare with a bound.

struct RefArray {
  std::vector<int64_t> shape;
  std::vector<double> values;  // row-major

  RefArray() = default;
  explicit RefArray(std::vector<int64_t> extents);
  RefArray(std::vector<int64_t> extents, std::vector<double> elements)
      : shape(std::move(extents)), values(std::move(elements)) {}
  int64_t offset(const std::vector<int64_t>& at) const;
  double& operator[](const std::vector<int64_t>& at) {
    return values[static_cast<size_t>(offset(at))];
  }
  double operator[](const std::vector<int64_t>& at) const {
    return values[static_cast<size_t>(offset(at))];
  }
};

/// Calls f(indices) for every point of `shape` in row-major order.
template <class F>
void each_point(const std::vector<int64_t>& shape, F&& f) {
  for (int64_t extent : shape)
    if (extent == 0) return;
  std::vector<int64_t> at(shape.size(), 0);
  for (;;) {
    f(static_cast<const std::vector<int64_t>&>(at));
    size_t d = shape.size();
    while (d > 0 && ++at[d - 1] == shape[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

RefArray ref_matmul(const RefArray& a,
                    const RefArray& b);  // two-dimensional, or one common batch dimension
RefArray ref_conv(const RefArray& x, const RefArray& w, const RefArray* bias,
                  const ConvOptions& options);
/// Every input spread over the taps' places; dilations and groups are 1, no output padding.
RefArray ref_conv_transpose(const RefArray& x, const RefArray& w, const RefArray* bias,
                            const ConvOptions& options);
/// x[n, c, h, w] in blocks of channels: [n, ceil(c/block), h, w, block], zeros past c; and back.
RefArray ref_blocked(const RefArray& x, int64_t block);
RefArray ref_unblocked(const RefArray& x, int64_t channels);
/// conv2d_winograd and its weights by the matrices of the paper; `bias` may be null.
RefArray ref_winograd_weights(const RefArray& w, int64_t m, int64_t block);
RefArray ref_winograd(const RefArray& x, const RefArray& u, const RefArray* bias, int64_t pad,
                      int64_t c_out);
RefArray ref_pool(std::string_view op, const RefArray& x,
                  const PoolOptions& options);  // max, average
RefArray ref_reduce(std::string_view op, const RefArray& x, const std::vector<int64_t>& axes,
                    bool keep);
RefArray ref_arg(bool maximum, const RefArray& x, int64_t axis);
RefArray ref_softmax(const RefArray& x, int64_t axis, bool logarithm);
/// softmax(q k^T * scale + mask) v of q[b, m, d], k[b, n, d], v[b, n, e] and mask[m, n] (null:
/// none); causal: query i sees the keys up to i + (n - m).
RefArray ref_attention(const RefArray& q, const RefArray& k, const RefArray& v,
                       const RefArray* mask, double scale, bool causal);
/// Over the last dimension, with scale and bias of its extent.
RefArray ref_layer_norm(const RefArray& x, const RefArray& scale, const RefArray& bias,
                        double epsilon);
RefArray ref_batch_norm(const RefArray& x, const RefArray& scale, const RefArray& bias,
                        const RefArray& mean, const RefArray& variance, double epsilon);
/// Unary operators at their default numbers; NaN for a name it does not know.
double ref_unary(std::string_view op, double x);
double ref_binary(std::string_view op, double a, double b, bool floats);

// reference_movers.cpp
RefArray ref_transpose(const RefArray& x, const std::vector<int64_t>& perm);
RefArray ref_reshape(const RefArray& x, const std::vector<int64_t>& shape);
RefArray ref_concat(const std::vector<RefArray>& parts, int64_t axis);
RefArray ref_slice(const RefArray& x, const std::vector<int64_t>& starts,
                   const std::vector<int64_t>& steps, const std::vector<int64_t>& extents);
RefArray ref_pad(const RefArray& x, const std::vector<int64_t>& before,
                 const std::vector<int64_t>& after, PadMode mode, double value);
RefArray ref_gather(const RefArray& x, const RefArray& indices, int64_t axis);
RefArray ref_expand(const RefArray& x, const std::vector<int64_t>& shape);
RefArray ref_tile(const RefArray& x, const std::vector<int64_t>& repeats);

}  // namespace tenon
