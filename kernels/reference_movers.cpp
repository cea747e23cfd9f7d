#include <algorithm>

#include "kernels/reference.h"

namespace tenon {
namespace {

using Shape = std::vector<int64_t>;

size_t counted(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

/// The element of [0, n) at position i of a padded dimension, found by walking; -1 in the padding.
int64_t walk_back(int64_t i, int64_t n, PadMode mode) {
  if (mode == PadMode::constant) return i >= 0 && i < n ? i : -1;
  while (i < 0 || i >= n) {
    if (mode == PadMode::edge) return i < 0 ? 0 : n - 1;
    if (mode == PadMode::wrap)
      i += i < 0 ? n : -n;
    else if (n == 1)
      return 0;
    else
      i = i < 0 ? -i : 2 * (n - 1) - i;
  }
  return i;
}

}  // namespace

RefArray ref_transpose(const RefArray& x, const std::vector<int64_t>& perm) {
  Shape shape;
  for (int64_t d : perm) shape.push_back(x.shape[static_cast<size_t>(d)]);
  RefArray y(shape);
  each_point(shape, [&](const Shape& at) {
    Shape from(at.size());
    for (size_t d = 0; d < at.size(); ++d) from[static_cast<size_t>(perm[d])] = at[d];
    y[at] = x[from];
  });
  return y;
}

RefArray ref_reshape(const RefArray& x, const std::vector<int64_t>& shape) {
  return RefArray(shape, x.values);
}

RefArray ref_concat(const std::vector<RefArray>& parts, int64_t axis) {
  Shape shape = parts[0].shape;
  const size_t d = counted(axis, shape.size());
  shape[d] = 0;
  for (const RefArray& part : parts) shape[d] += part.shape[d];
  RefArray y(shape);
  int64_t begin = 0;
  for (const RefArray& part : parts) {
    each_point(part.shape, [&](const Shape& at) {
      Shape to = at;
      to[d] += begin;
      y[to] = part[at];
    });
    begin += part.shape[d];
  }
  return y;
}

RefArray ref_slice(const RefArray& x, const std::vector<int64_t>& starts,
                   const std::vector<int64_t>& steps, const std::vector<int64_t>& extents) {
  RefArray y(extents);
  each_point(extents, [&](const Shape& at) {
    Shape from = at;
    for (size_t d = 0; d < from.size(); ++d) from[d] = starts[d] + steps[d] * at[d];
    y[at] = x[from];
  });
  return y;
}

RefArray ref_pad(const RefArray& x, const std::vector<int64_t>& before,
                 const std::vector<int64_t>& after, PadMode mode, double value) {
  Shape shape = x.shape;
  for (size_t d = 0; d < shape.size(); ++d) shape[d] += before[d] + after[d];
  RefArray y(shape);
  each_point(shape, [&](const Shape& at) {
    Shape from = at;
    bool inside = true;
    for (size_t d = 0; d < from.size(); ++d) {
      from[d] = walk_back(at[d] - before[d], x.shape[d], mode);
      inside = inside && from[d] >= 0;
    }
    y[at] = inside ? x[from] : value;
  });
  return y;
}

RefArray ref_gather(const RefArray& x, const RefArray& indices, int64_t axis) {
  const size_t d = counted(axis, x.shape.size()), inner = indices.shape.size();
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(d));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(d) + 1, x.shape.end());
  RefArray y(shape);
  each_point(shape, [&](const Shape& at) {
    const auto begin = at.begin() + static_cast<std::ptrdiff_t>(d),
               end = begin + static_cast<std::ptrdiff_t>(inner);
    int64_t index = static_cast<int64_t>(indices[Shape(begin, end)]);
    if (index < 0) index += x.shape[d];
    index = std::clamp<int64_t>(index, 0, x.shape[d] - 1);
    Shape from(at.begin(), begin);
    from.push_back(index);
    from.insert(from.end(), end, at.end());
    y[at] = x[from];
  });
  return y;
}

RefArray ref_expand(const RefArray& x, const std::vector<int64_t>& shape) {
  const size_t rank = std::max(shape.size(), x.shape.size());
  Shape own = x.shape, to = shape;
  own.insert(own.begin(), rank - own.size(), 1);
  to.insert(to.begin(), rank - to.size(), 1);
  for (size_t d = 0; d < rank; ++d)
    if (to[d] == 1) to[d] = own[d];
  const RefArray stretched(own, x.values);
  RefArray y(to);
  each_point(to, [&](const Shape& at) {
    Shape from = at;
    for (size_t d = 0; d < rank; ++d)
      if (own[d] == 1) from[d] = 0;
    y[at] = stretched[from];
  });
  return y;
}

RefArray ref_tile(const RefArray& x, const std::vector<int64_t>& repeats) {
  Shape shape = x.shape;
  for (size_t d = 0; d < shape.size(); ++d) shape[d] *= repeats[d];
  RefArray y(shape);
  each_point(shape, [&](const Shape& at) {
    Shape from = at;
    for (size_t d = 0; d < from.size(); ++d) from[d] = at[d] % x.shape[d];
    y[at] = x[from];
  });
  return y;
}

}  // namespace tenon
