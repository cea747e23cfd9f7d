#include "kernels/movers.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "kernels/axes.h"

namespace tenon {
namespace {

using Shape = std::vector<int64_t>;

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t p = 1;
  for (size_t d = begin; d < end; ++d) p *= shape[d];
  return p;
}

/// An image of one or two spatial dimensions after batch and channels; `inner` more come after it.
void require_image(const std::string& name, const Tensor& x, int inner) {
  if (x.rank() == 3 + inner || x.rank() == 4 + inner) return;
  throw UserError(fmt::format("{}: \"{}\" needs {} or {} dimensions; its shape is {}", name,
                              x.name(), 3 + inner, 4 + inner, shape_text(x.extents())));
}

/// Batch, `channels`, and `spatial` dimensions of x.
std::vector<Axis> image_axes(const Tensor& x, const Axis& channels, int spatial) {
  std::vector<Axis> axes = {Axis("n", x.extent(0)), channels};
  if (spatial == 2) axes.emplace_back("h", x.extent(2));
  axes.emplace_back("w", x.extent(1 + spatial));
  return axes;
}

Expr linear(const std::vector<Expr>& at, const Shape& shape, size_t begin, size_t end) {
  Expr index;
  for (size_t d = begin; d < end; ++d) {
    if (shape[d] == 1) continue;
    index = index.defined() ? index * int_imm(shape[d]) + at[d] : at[d];
  }
  return index.defined() ? index : int_imm(0);
}

/// The indices of dimensions [begin, end) of `shape` that a linear index stands for.
void unravel(const Expr& index, const Shape& shape, size_t begin, size_t end,
             std::vector<Expr>& at) {
  int64_t below = product(shape, begin, end);
  for (size_t d = begin; d < end; ++d) {
    const bool first = below == product(shape, begin, end);
    below /= std::max<int64_t>(shape[d], 1);
    if (shape[d] == 1) {
      at.push_back(int_imm(0));
      continue;
    }
    Expr part = below <= 1 ? index : floor_div(index, int_imm(below));
    at.push_back(first ? part : floor_mod(part, int_imm(shape[d])));
  }
}

/// Indices of x for each point of the result: dimensions whose running products agree are matched
/// group by group, so that those which stay as they are keep a plain index.
std::vector<Expr> reshape_indices(const std::vector<Expr>& at, const Shape& to, const Shape& from) {
  std::vector<Expr> result;
  size_t t = 0, f = 0;
  while (f < from.size()) {
    size_t t_end = t, f_end = f + 1;
    int64_t tp = 1, fp = from[f];
    while (tp != fp) {
      if (tp < fp)
        tp *= to[t_end++];
      else
        fp *= from[f_end++];
    }
    unravel(linear(at, to, t, t_end), from, f, f_end, result);
    t = t_end;
    f = f_end;
  }
  return result;
}

/// A position along a dimension of extent n read from `indices`: negative from the end, clamped.
Expr position(const Expr& raw, int64_t n) {
  const Expr i = as_type(i64, raw);
  const Expr counted =
      is_unsigned_int(raw.dtype()) ? i : i + select(i < int_imm(0), int_imm(n), int_imm(0));
  return min(max(counted, int_imm(0)), int_imm(std::max<int64_t>(n - 1, 0)));
}

void require_positions(const std::string& name, const Tensor& indices) {
  if (!is_int(indices.dtype()))
    throw UserError(fmt::format("{}: the indices \"{}\" are {}; they must be integers", name,
                                indices.name(), tenon::name(indices.dtype())));
}

void require_elements(const std::string& name, const Tensor& x, int64_t extent, int axis,
                      const Shape& result) {
  if (extent == 0 && product(result, 0, result.size()) != 0)
    throw UserError(fmt::format("{}: dimension {} of \"{}\" is empty; there is nothing to gather",
                                name, axis, x.name()));
}

}  // namespace

Tensor reshape(const Tensor& x, const std::vector<int64_t>& shape, const std::string& name) {
  const Shape from = x.extents();
  const int64_t count = product(from, 0, from.size());
  if (count != product(shape, 0, shape.size()))
    throw UserError(fmt::format("{}: \"{}\" of shape {} has {} elements; shape {} has {}", name,
                                x.name(), shape_text(from), count, shape_text(shape),
                                product(shape, 0, shape.size())));
  const auto axes = axes_over(shape);
  if (count == 0) return compute(name, axes, zero(x.dtype()));
  return compute(name, axes, x.at(reshape_indices(indices_of(axes), shape, from)));
}

Tensor transpose(const Tensor& x, const std::vector<int64_t>& perm, const std::string& name) {
  const size_t rank = static_cast<size_t>(x.rank());
  Shape order = perm;
  if (order.empty())
    for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(rank - 1 - d));
  if (order.size() != rank || normal_axes(name, order, x.rank()).size() != rank)
    throw UserError(fmt::format("{}: the permutation has {} numbers; \"{}\" has {} dimensions",
                                name, order.size(), x.name(), rank));
  Shape shape;
  for (int64_t d : order) shape.push_back(x.extent(normal_axis(name, d, x.rank())));
  const auto axes = axes_over(shape);
  std::vector<Expr> at(rank);
  for (size_t d = 0; d < rank; ++d)
    at[static_cast<size_t>(normal_axis(name, order[d], x.rank()))] = axes[d].var;
  return compute(name, axes, x.at(at));
}

Tensor concat(const std::vector<Tensor>& parts, int64_t axis, const std::string& name) {
  if (parts.empty()) throw UserError(fmt::format("{}: there is nothing to join", name));
  const int d = normal_axis(name, axis, parts[0].rank());
  Shape shape = parts[0].extents();
  Shape ends = {shape[static_cast<size_t>(d)]};
  for (size_t p = 1; p < parts.size(); ++p) {
    require_same_type(name, parts[0], parts[p]);
    Shape own = parts[p].extents();
    const int64_t extent = own.size() == shape.size() ? own[static_cast<size_t>(d)] : -1;
    if (extent >= 0) own[static_cast<size_t>(d)] = shape[static_cast<size_t>(d)];
    if (own != shape)
      throw UserError(fmt::format("{}: shapes {} and {} differ outside of dimension {}", name,
                                  shape_text(parts[0].extents()), shape_text(parts[p].extents()),
                                  d));
    ends.push_back(ends.back() + extent);
  }
  shape[static_cast<size_t>(d)] = ends.back();
  const auto axes = axes_over(shape);
  std::vector<Expr> at = indices_of(axes);
  const Expr along = at[static_cast<size_t>(d)];
  // From the last part to the first: i < end0 ? part0 : (i < end1 ? part1 : ...)
  Expr value;
  for (size_t p = parts.size(); p-- > 0;) {
    const int64_t begin = p == 0 ? 0 : ends[p - 1];
    if (ends[p] == begin) continue;
    at[static_cast<size_t>(d)] = begin == 0 ? along : along - int_imm(begin);
    const Expr part = parts[p].at(at);
    value = value.defined() ? select(along < int_imm(ends[p]), part, value) : part;
  }
  return compute(name, axes, value.defined() ? value : zero(parts[0].dtype()));
}

Tensor slice(const Tensor& x, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps,
             const std::vector<int64_t>& extents, const std::string& name) {
  const size_t rank = static_cast<size_t>(x.rank());
  if (starts.size() != rank || steps.size() != rank || extents.size() != rank)
    throw UserError(fmt::format("{}: {} starts, {} steps and {} extents for {} dimensions", name,
                                starts.size(), steps.size(), extents.size(), rank));
  const auto axes = axes_over(extents);
  std::vector<Expr> at;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t n = x.extent(static_cast<int>(d)), last = starts[d] + steps[d] * (extents[d] - 1);
    if (extents[d] > 0 && (std::min(starts[d], last) < 0 || std::max(starts[d], last) >= n))
      throw UserError(fmt::format("{}: dimension {} of extent {} has no elements {} to {}", name, d,
                                  n, starts[d], last));
    Expr i = axes[d].var;
    if (steps[d] != 1) i = i * int_imm(steps[d]);
    at.push_back(starts[d] == 0 ? i : i + int_imm(starts[d]));
  }
  return compute(name, axes, x.at(at));
}

Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis, const std::string& name) {
  require_positions(name, indices);
  const int d = normal_axis(name, axis, x.rank());
  const Shape from = x.extents(), inner = indices.extents();
  Shape shape(from.begin(), from.begin() + d);
  shape.insert(shape.end(), inner.begin(), inner.end());
  shape.insert(shape.end(), from.begin() + d + 1, from.end());
  require_elements(name, x, from[static_cast<size_t>(d)], d, shape);
  const auto axes = axes_over(shape);
  const std::vector<Expr> all = indices_of(axes);
  const auto begin = all.begin() + d, end = begin + static_cast<std::ptrdiff_t>(inner.size());
  std::vector<Expr> at(all.begin(), begin);
  at.push_back(position(indices.at(std::vector<Expr>(begin, end)), from[static_cast<size_t>(d)]));
  at.insert(at.end(), end, all.end());
  return compute(name, axes, x.at(at));
}

Tensor gather_elements(const Tensor& x, const Tensor& indices, int64_t axis,
                       const std::string& name) {
  require_positions(name, indices);
  require_rank(name, indices, x.rank());
  const int d = normal_axis(name, axis, x.rank());
  for (int n = 0; n < x.rank(); ++n)
    if (n != d && indices.extent(n) > x.extent(n))
      throw UserError(
          fmt::format("{}: dimension {} of the indices ({}) exceeds that of \"{}\" ({})", name, n,
                      shape_text(indices.extents()), x.name(), shape_text(x.extents())));
  require_elements(name, x, x.extent(d), d, indices.extents());
  const auto axes = axes_over(indices.extents());
  std::vector<Expr> at = indices_of(axes);
  at[static_cast<size_t>(d)] = position(indices.at(indices_of(axes)), x.extent(d));
  return compute(name, axes, x.at(at));
}

Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch, const std::string& name) {
  require_positions(name, indices);
  const Shape from = x.extents(), is = indices.extents();
  const int64_t depth = is.empty() ? 0 : is.back();
  if (is.empty() || batch < 0 || batch >= static_cast<int64_t>(is.size()) ||
      depth + batch > x.rank())
    throw UserError(fmt::format(
        "{}: indices of shape {} with {} batch dimensions do not fit \"{}\" of shape {}", name,
        shape_text(is), batch, x.name(), shape_text(from)));
  Shape shape(is.begin(), is.end() - 1);
  shape.insert(shape.end(), from.begin() + batch + depth, from.end());
  const auto axes = axes_over(shape);
  const std::vector<Expr> all = indices_of(axes);
  const auto rows = all.begin() + static_cast<std::ptrdiff_t>(is.size() - 1);
  std::vector<Expr> at(all.begin(), all.begin() + batch), row(all.begin(), rows);
  for (int64_t n = 0; n < depth; ++n) {
    const size_t d = static_cast<size_t>(batch + n);
    require_elements(name, x, from[d], static_cast<int>(d), shape);
    std::vector<Expr> where = row;
    where.push_back(int_imm(n));
    at.push_back(position(indices.at(where), from[d]));
  }
  at.insert(at.end(), rows, all.end());
  return compute(name, axes, x.at(at));
}

Tensor expand(const Tensor& x, const std::vector<int64_t>& shape, const std::string& name) {
  const auto axes = axes_over(broadcast_shape(name, x.extents(), shape));
  return compute(name, axes, broadcast_read(x, indices_of(axes)));
}

Tensor tile(const Tensor& x, const std::vector<int64_t>& repeats, const std::string& name) {
  if (static_cast<int>(repeats.size()) != x.rank())
    throw UserError(
        fmt::format("{}: {} repeats for {} dimensions", name, repeats.size(), x.rank()));
  Shape shape = x.extents();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d] < 0)
      throw UserError(
          fmt::format("{}: repeat {} is {}; it must be 0 or more", name, d, repeats[d]));
    shape[d] *= repeats[d];
  }
  const auto axes = axes_over(shape);
  std::vector<Expr> at;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t n = x.extent(static_cast<int>(d));
    at.push_back(n == 1                      ? int_imm(0)
                 : repeats[d] == 1 || n == 0 ? Expr(axes[d])
                                             : floor_mod(axes[d].var, int_imm(n)));
  }
  return compute(name, axes, x.at(at));
}

Tensor filled(DType t, const std::vector<int64_t>& shape, double value, const std::string& name) {
  return compute(name, axes_over(shape), imm(value, t));
}

Tensor depth_to_space(const Tensor& x, int64_t block, bool depth_first, const std::string& name) {
  require_rank(name, x, 4);
  const int64_t c = x.extent(1);
  if (block < 1 || c % (block * block) != 0)
    throw UserError(fmt::format("{}: {} channels are not a multiple of the block's {} elements",
                                name, c, block * block));
  const int64_t c_out = c / (block * block);
  const auto axes = axes_over({x.extent(0), c_out, x.extent(2) * block, x.extent(3) * block});
  const Expr b = int_imm(block), ch = axes[1].var;
  const Expr by = floor_mod(axes[2].var, b), bx = floor_mod(axes[3].var, b);
  const Expr within = by * b + bx;
  const Expr channel =
      depth_first ? within * int_imm(c_out) + ch : ch * int_imm(block * block) + within;
  return compute(name, axes,
                 x(axes[0], channel, floor_div(axes[2].var, b), floor_div(axes[3].var, b)));
}

Tensor space_to_depth(const Tensor& x, int64_t block, const std::string& name) {
  require_rank(name, x, 4);
  if (block < 1 || x.extent(2) % block != 0 || x.extent(3) % block != 0)
    throw UserError(fmt::format("{}: the image {}x{} is not a multiple of the block {}", name,
                                x.extent(2), x.extent(3), block));
  const int64_t c = x.extent(1);
  const auto axes =
      axes_over({x.extent(0), c * block * block, x.extent(2) / block, x.extent(3) / block});
  const Expr b = int_imm(block), channel = floor_mod(axes[1].var, int_imm(c)),
             within = floor_div(axes[1].var, int_imm(c));
  return compute(name, axes,
                 x(axes[0], channel, Expr(axes[2]) * b + floor_div(within, b),
                   Expr(axes[3]) * b + floor_mod(within, b)));
}

Tensor triangle(const Tensor& x, int64_t k, bool upper, const std::string& name) {
  if (x.rank() < 2) throw UserError(fmt::format("{}: \"{}\" needs two dimensions", name, x.name()));
  const auto axes = axes_over(x.extents());
  const Expr row = axes[axes.size() - 2].var, column = axes.back().var, diagonal = column - row;
  const Expr inside = upper ? diagonal >= int_imm(k) : diagonal <= int_imm(k);
  return compute(name, axes, select(inside, x.at(indices_of(axes)), zero(x.dtype())));
}

Tensor block_channels(const Tensor& x, int64_t block, const std::string& name) {
  require_image(name, x, 0);
  if (block < 1) throw UserError(fmt::format("{}: a block of {} channels", name, block));
  const int64_t channels = x.extent(1);
  const Axis b("cb", (channels + block - 1) / block), lane("c", block);
  std::vector<Axis> axes = image_axes(x, b, x.rank() - 2);
  const Expr channel = Expr(b) * int_imm(block) + Expr(lane);
  std::vector<Expr> at = indices_of(axes);
  at[1] = channel;
  const Expr value = x.at(at);
  axes.push_back(lane);
  if (channels % block == 0) return compute(name, axes, value);
  return compute(name, axes, select(channel < int_imm(channels), value, zero(x.dtype())));
}

Tensor unblock_channels(const Tensor& x, int64_t channels, const std::string& name) {
  require_image(name, x, 1);
  const int64_t block = x.extent(x.rank() - 1);
  if (channels < 0 || channels > x.extent(1) * block)
    throw UserError(fmt::format("{}: {} channels of \"{}\", which holds {}", name, channels,
                                x.name(), x.extent(1) * block));
  const Axis c("c", channels);
  std::vector<Axis> axes = image_axes(x, c, x.rank() - 3);
  if (channels == 0) return compute(name, axes, zero(x.dtype()));
  std::vector<Expr> at = indices_of(axes);
  at[1] = floor_div(c, int_imm(block));
  at.push_back(floor_mod(c, int_imm(block)));
  return compute(name, axes, x.at(at));
}

}  // namespace tenon
