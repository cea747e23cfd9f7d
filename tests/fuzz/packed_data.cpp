#include "packed_data.h"

#include <tenon/ir/ops.h>

#include <cstring>

namespace tenon {

Array as_stored(const BufferNode& buffer, const Array& plain) {
  if (buffer.layout.empty()) return plain;
  std::vector<int64_t> shape, stored;
  for (const Expr& e : buffer.shape) shape.push_back(*as_int(e));
  int64_t size = 1;
  for (const LayoutDim& d : buffer.layout) {
    const int64_t extent = shape[static_cast<size_t>(d.dim)];
    stored.push_back(d.modulo > 0 ? d.modulo : (extent + d.divide - 1) / d.divide);
    size *= stored.back();
  }
  const Array out = zeros(plain.dtype(), {size});
  const auto bytes = static_cast<size_t>(byte_size(plain.dtype()));
  for (size_t n = 0; n < static_cast<size_t>(plain.size()); ++n) {
    std::vector<int64_t> index(shape.size());
    int64_t rest = static_cast<int64_t>(n), at = 0;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    for (size_t s = 0; s < stored.size(); ++s) {
      const LayoutDim& d = buffer.layout[s];
      const int64_t part = index[static_cast<size_t>(d.dim)] / d.divide;
      at = at * stored[s] + (d.modulo > 0 ? part % d.modulo : part);
    }
    std::memcpy(static_cast<char*>(out.raw()) + static_cast<size_t>(at) * bytes,
                static_cast<const char*>(plain.raw()) + n * bytes, bytes);
  }
  return out;
}

}  // namespace tenon
