#include "kernels/pad.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include "kernels/axes.h"

namespace tenon {
namespace {

using Shape = std::vector<int64_t>;

Shape padded_shape(const std::string& name, const Shape& shape, const Shape& before,
                   const Shape& after) {
  if (before.size() != shape.size() || after.size() != shape.size())
    throw UserError(fmt::format("{}: {} and {} pads for {} dimensions", name, before.size(),
                                after.size(), shape.size()));
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    result.push_back(shape[d] + before[d] + after[d]);
    if (result[d] < 0)
      throw UserError(fmt::format("{}: dimension {} of extent {} cannot lose {} elements", name, d,
                                  shape[d], -before[d] - after[d]));
  }
  return result;
}

/// The element of [0, n) that index `i` (which may lie outside) stands for.
Expr source_index(PadMode mode, const Expr& i, int64_t n) {
  const Expr last = int_imm(n - 1);
  if (mode == PadMode::edge) return min(max(i, int_imm(0)), last);
  if (mode == PadMode::wrap) return floor_mod(i, int_imm(n));
  // Reflection has the period 2(n-1): ... 2 1 | 0 1 2 ... n-1 | n-2 ...
  if (n == 1) return int_imm(0);
  const Expr inside = floor_mod(i, int_imm(2 * (n - 1)));
  return min(inside, int_imm(2 * (n - 1)) - inside);
}

}  // namespace

Tensor pad_to(const Tensor& x, const std::vector<int64_t>& before,
              const std::vector<int64_t>& shape, Expr value, const std::string& name) {
  const Shape extents = x.extents();
  const std::vector<Axis> axes = axes_over(shape);
  std::vector<Expr> at;
  Expr inside;
  bool same = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Expr i = axes[d].var;
    at.push_back(before[d] == 0 ? i : i - int_imm(before[d]));
    if (before[d] > 0) inside = both(inside, i >= int_imm(before[d]));
    if (shape[d] > before[d] + extents[d])
      inside = both(inside, i < int_imm(before[d] + extents[d]));
    same = same && before[d] == 0 && shape[d] == extents[d];
  }
  if (same) return x;
  return compute(name, axes, inside.defined() ? select(inside, x.at(at), value) : x.at(at));
}

Tensor pad(const Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
           PadMode mode, Expr value, const std::string& name) {
  const Shape extents = x.extents();
  const Shape shape = padded_shape(name, extents, before, after);
  const std::vector<Axis> axes = axes_over(shape);
  if (mode == PadMode::constant) {
    Tensor padded = pad_to(x, before, shape, as_type(x.dtype(), value), name);
    return padded.buffer().same_as(x.buffer()) ? compute(name, axes, x.at(indices_of(axes)))
                                               : padded;
  }
  std::vector<Expr> at;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Expr i = Expr(axes[d]) - int_imm(before[d]);
    if (before[d] <= 0 && after[d] <= 0) {
      at.push_back(i);
      continue;
    }
    if (extents[d] == 0 && shape[d] > 0)
      throw UserError(fmt::format("{}: dimension {} is empty and has nothing to repeat", name, d));
    at.push_back(source_index(mode, i, extents[d]));
  }
  return compute(name, axes, x.at(at));
}

}  // namespace tenon
