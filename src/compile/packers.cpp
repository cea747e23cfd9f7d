#include "compile/packers.h"

#include <tenon/ir/ops.h>

#include "arith/layout.h"

namespace tenon {
namespace {

std::vector<int64_t> constants(const std::vector<Expr>& shape) {
  const auto out = const_shape(shape);
  TENON_CHECK(out.has_value(), "a packed parameter of symbolic extents");
  return *out;
}

std::vector<Axis> axes_over(const std::vector<int64_t>& shape) {
  std::vector<Axis> out;
  for (size_t d = 0; d < shape.size(); ++d) out.emplace_back(fmt::format("d{}", d), Expr(shape[d]));
  return out;
}

Program scheduled(const std::string& name, const Tensor& output, const Target& target) {
  return default_schedule(Task(name, output, target)).program();
}

}  // namespace

Program packing_program(const Buffer& packed, const Target& target) {
  const std::vector<int64_t> plain_shape = constants(packed->shape);
  const Tensor plain = input(packed->name, packed->dtype, plain_shape);
  const std::vector<Axis> axes = axes_over(constants(storage_shape(*packed)));
  const std::vector<Expr> at = logical_indices(*packed, {axes.begin(), axes.end()});
  Expr inside;
  for (size_t d = 0; d < at.size(); ++d) {
    int64_t block = 1;
    for (const LayoutDim& l : packed->layout)
      if (l.dim == static_cast<int>(d)) block = std::max(block, l.divide);
    if (plain_shape[d] % block != 0) inside = both(inside, at[d] < Expr(plain_shape[d]));
  }
  const Expr value = plain.at(at);
  const Tensor out = compute(packed->name + ".packed", axes,
                             inside.defined() ? select(inside, value, zero(packed->dtype)) : value);
  return scheduled("prepack_" + packed->name, out, target);
}

Program unpacking_program(const Buffer& packed, const Target& target) {
  const Tensor in =
      input(packed->name + ".packed", packed->dtype, constants(storage_shape(*packed)));
  const std::vector<Axis> axes = axes_over(constants(packed->shape));
  const Tensor out =
      compute(packed->name, axes, in.at(storage_indices(*packed, {axes.begin(), axes.end()})));
  return scheduled("unpack_" + packed->name, out, target);
}

}  // namespace tenon
