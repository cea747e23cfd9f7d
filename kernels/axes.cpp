#include "kernels/axes.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

namespace tenon {

std::vector<Axis> axes_over(const std::vector<int64_t>& shape, std::string_view prefix) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < shape.size(); ++d)
    axes.emplace_back(fmt::format("{}{}", prefix, d), shape[d]);
  return axes;
}

std::vector<Axis> named_axes(const std::vector<int64_t>& shape,
                             const std::vector<std::string>& names) {
  TENON_CHECK(shape.size() == names.size(), "{} names for {} dimensions", names.size(),
              shape.size());
  std::vector<Axis> axes;
  for (size_t d = 0; d < shape.size(); ++d) axes.emplace_back(names[d], shape[d]);
  return axes;
}

std::vector<Expr> indices_of(const std::vector<Axis>& axes) {
  std::vector<Expr> indices;
  for (const Axis& axis : axes) indices.push_back(axis.var);
  return indices;
}

std::vector<int64_t> broadcast_shape(std::string_view where, const std::vector<int64_t>& a,
                                     const std::vector<int64_t>& b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()));
  for (size_t back = 1; back <= shape.size(); ++back) {
    const int64_t x = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t y = back <= b.size() ? b[b.size() - back] : 1;
    if (x != y && x != 1 && y != 1)
      throw UserError(fmt::format(
          "{}: shapes {} and {} cannot be broadcast: {} against {} in dimension {} from the end",
          where, shape_text(a), shape_text(b), x, y, back));
    shape[shape.size() - back] = x == 1 ? y : x;
  }
  return shape;
}

Expr broadcast_read(const Tensor& t, const std::vector<Expr>& indices) {
  const size_t rank = static_cast<size_t>(t.rank());
  TENON_CHECK(indices.size() >= rank, "{} indices for the {} dimensions of {}", indices.size(),
              rank, t.name());
  std::vector<Expr> own(indices.end() - rank, indices.end());
  for (size_t d = 0; d < rank; ++d)
    if (t.extent(static_cast<int>(d)) == 1) own[d] = int_imm(0);
  return t.at(own);
}

int normal_axis(std::string_view where, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw UserError(fmt::format("{}: axis {} is not in [{}, {}) of a tensor of rank {}", where,
                                axis, -rank, rank, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> normal_axes(std::string_view where, const std::vector<int64_t>& axes, int rank) {
  std::vector<int> all;
  for (int64_t axis : axes) all.push_back(normal_axis(where, axis, rank));
  std::sort(all.begin(), all.end());
  for (size_t n = 1; n < all.size(); ++n)
    if (all[n] == all[n - 1])
      throw UserError(fmt::format("{}: axis {} is given twice", where, all[n]));
  return all;
}

DType accumulator_type(DType t) { return t == f16 || t == bf16 ? f32 : t; }

DType wide_type(DType t) { return t == u8 || t == i8 ? i32 : accumulator_type(t); }

Expr as_type(DType t, Expr e) { return e.dtype() == t ? e : cast(t, std::move(e)); }

void require_rank(std::string_view where, const Tensor& t, int rank) {
  if (t.rank() != rank)
    throw UserError(fmt::format("{}: \"{}\" needs {} dimensions; its shape is {}", where, t.name(),
                                rank, shape_text(t.extents())));
}

void require_same_type(std::string_view where, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    throw UserError(fmt::format("{}: \"{}\" is {} and \"{}\" is {}; the types must be equal", where,
                                a.name(), name(a.dtype()), b.name(), name(b.dtype())));
}

void require_same_wide_type(std::string_view where, const Tensor& a, const Tensor& b) {
  const DType wide = wide_type(a.dtype()), other = wide_type(b.dtype());
  if (wide != other)
    throw UserError(fmt::format(
        "{}: \"{}\" is {}, whose sums are {}, and \"{}\" is {}, whose sums are {}; they must be "
        "equal",
        where, a.name(), name(a.dtype()), name(wide), b.name(), name(b.dtype()), name(other)));
}

void require_float(std::string_view where, const Tensor& t) {
  if (!is_float(t.dtype()))
    throw UserError(
        fmt::format("{}: \"{}\" is {}; a float type is needed", where, t.name(), name(t.dtype())));
}

}  // namespace tenon
