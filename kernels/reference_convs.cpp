#include <algorithm>

#include "kernels/reference.h"

namespace tenon {

RefArray ref_conv_transpose(const RefArray& x, const RefArray& w, const RefArray* bias,
                            const ConvOptions& options) {
  using Shape = std::vector<int64_t>;
  Shape shape = {x.shape[0], w.shape[1]};
  for (size_t d = 0; d < 2; ++d)
    shape.push_back(std::max<int64_t>(0, options.strides[d] * (x.shape[2 + d] - 1) +
                                             w.shape[2 + d] - options.pads_begin[d] -
                                             options.pads_end[d]));
  RefArray y(shape);
  each_point(shape,
             [&](const Shape& at) { y[at] = bias ? bias->values[static_cast<size_t>(at[1])] : 0; });
  each_point(x.shape, [&](const Shape& from) {
    each_point({w.shape[1], w.shape[2], w.shape[3]}, [&](const Shape& k) {
      const int64_t h = from[2] * options.strides[0] + k[1] - options.pads_begin[0],
                    v = from[3] * options.strides[1] + k[2] - options.pads_begin[1];
      if (h >= 0 && v >= 0 && h < shape[2] && v < shape[3])
        y[{from[0], k[0], h, v}] += x[from] * w[{from[1], k[0], k[1], k[2]}];
    });
  });
  return y;
}

}  // namespace tenon
