#pragma once
#include <tenon/te/te.h>

namespace tenon {

/// One number per spatial dimension; empty strides and dilations mean 1, empty pads 0.
struct PoolOptions {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> pads_begin, pads_end;
  bool ceil_mode = false;  // round the result's extent up; no window starts in the padding behind
  bool count_include_pad = false;  // averages: padding counts as zeros
};

/// The result's extent of one dimension of a pool.
int64_t pool_extent(int64_t extent, int64_t kernel, int64_t stride, int64_t dilation,
                    int64_t pad_begin, int64_t pad_end, bool ceil_mode);

/// Windows over the spatial dimensions of x[n, c, d...]; taps in the padding are left out. A window
/// that is the whole image is a global pool.
Tensor max_pool(const Tensor& x, const PoolOptions& options, const std::string& name = "max_pool");
/// Sum (name.sum) divided by the number of elements that count.
Tensor average_pool(const Tensor& x, const PoolOptions& options,
                    const std::string& name = "average_pool");
/// (sum |x|^p)^(1/p)
Tensor lp_pool(const Tensor& x, const PoolOptions& options, int64_t p,
               const std::string& name = "lp_pool");

/// Over all spatial dimensions, which stay with extent 1.
Tensor global_max_pool(const Tensor& x, const std::string& name = "global_max_pool");
Tensor global_average_pool(const Tensor& x, const std::string& name = "global_average_pool");

}  // namespace tenon
