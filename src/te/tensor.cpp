#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>
#include <tenon/te/te.h>

#include <algorithm>
#include <unordered_set>

#include "arith/simplify.h"
#include "te/check_constants.h"

namespace tenon {
namespace {

/// So many points fit 64-bit index arithmetic with room to spare.
constexpr int64_t kMostPoints = int64_t{1} << 56;

/// Refuses extents whose product, empty ones aside, would overflow what is computed from them.
void check_points(const std::string& where, const std::vector<Expr>& extents) {
  int64_t points = 1;
  for (const Expr& e : extents) {
    const std::optional<int64_t> extent = as_int(e);
    if (!extent || *extent <= 0) continue;
    if (__builtin_mul_overflow(points, *extent, &points) || points > kMostPoints) {
      std::vector<std::string> parts;
      for (const Expr& part : extents) parts.push_back(print(part));
      throw UserError(
          fmt::format("{}: extents of {} are too many points; at most 2^56 can be counted", where,
                      join(parts, " x ")));
    }
  }
}

std::vector<Expr> extents_of(const std::vector<Axis>& axes) {
  std::vector<Expr> extents;
  for (const Axis& axis : axes) extents.push_back(axis.extent);
  return extents;
}

/// The points of each reduction, over all points of the formula.
void check_reductions(const std::string& name, const std::vector<Axis>& axes, const Expr& value) {
  walk(value, [&](const Expr& e) {
    if (const Reduce* reduce = e.as<Reduce>()) {
      std::vector<Expr> extents = extents_of(axes);
      for (const Axis& axis : reduce->axes) extents.push_back(axis.extent);
      check_points(fmt::format("compute \"{}\"", name), extents);
    }
    return true;
  });
}

Tensor outside_tensor(std::string name, DType dtype, const std::vector<int64_t>& shape,
                      ParamRole role) {
  if (name.empty()) throw UserError("input: a tensor needs a name");
  std::vector<Expr> extents;
  for (int64_t extent : shape) {
    if (extent < 0)
      throw UserError(fmt::format("input \"{}\": extents are 0 or more; the shape is {}", name,
                                  shape_text(shape)));
    extents.push_back(int_imm(extent));
  }
  check_points(fmt::format("input \"{}\"", name), extents);
  auto origin = std::make_shared<Formula>();
  origin->name = name;
  origin->role = role;
  BufferNode node;
  node.name = std::move(name);
  node.dtype = dtype;
  node.shape = std::move(extents);
  node.origin = origin;
  return {Buffer(std::move(node)), role};
}

void check_axes(const std::string& name, const std::vector<Axis>& axes) {
  for (size_t n = 0; n < axes.size(); ++n) {
    if (!axes[n].var.defined() || axes[n].var.name().empty() || !axes[n].extent.defined())
      throw UserError(fmt::format("compute \"{}\": axis {} has no name or no extent", name, n));
    if (axes[n].extent.dtype() != i64)
      throw UserError(
          fmt::format("compute \"{}\": the extent of axis \"{}\" is {}; an extent is an i64", name,
                      axes[n].var.name(), tenon::name(axes[n].extent.dtype())));
    if (auto extent = as_int(axes[n].extent); extent && *extent < 0)
      throw UserError(
          fmt::format("compute \"{}\": axis \"{}\" has extent {}; extents are 0 or more", name,
                      axes[n].var.name(), *extent));
    for (size_t m = 0; m < n; ++m)
      if (axes[m].var.same_as(axes[n].var))
        throw UserError(
            fmt::format("compute \"{}\": axis \"{}\" is given twice, as axis {} and axis {}", name,
                        axes[n].var.name(), m, n));
  }
}

/// Variables that extents speak of: they are dimensions, bound at the call.
std::vector<Var> dimension_vars(const std::vector<Axis>& axes, const Expr& value) {
  std::vector<Var> found;
  auto add = [&](const Expr& extent) {
    for (const Var& v : free_vars(extent)) found.push_back(v);
  };
  for (const Axis& axis : axes) add(axis.extent);
  walk(value, [&](const Expr& e) {
    if (auto* l = e.as<Load>())
      for (const Expr& extent : l->buffer->shape) add(extent);
    if (auto* r = e.as<Reduce>())
      for (const Axis& axis : r->axes) add(axis.extent);
    return true;
  });
  return found;
}

bool contains(const std::vector<Var>& vars, const Var& v) {
  for (const Var& x : vars)
    if (x.same_as(v)) return true;
  return false;
}

/// The first variable of `e` that is not among `known` nor bound by a Reduce around it; undefined
/// if none.
Var first_unknown(const Expr& e, const std::vector<Var>& known) {
  bool has_reduce = false;
  walk(e, [&](const Expr& x) { return !(has_reduce = has_reduce || x.as<Reduce>()); });
  Var unknown;
  if (!has_reduce) {
    for (const Var& v : free_vars(e))
      if (!contains(known, v)) return v;
    return unknown;
  }
  std::vector<Var> inside = known;
  if (auto* r = e.as<Reduce>())
    for (const Axis& axis : r->axes) inside.push_back(axis.var);
  if (auto* l = e.as<Let>()) inside.push_back(l->var);
  map_children(e, [&](const Expr& child) {
    if (!unknown.defined()) unknown = first_unknown(child, inside);
    return child;
  });
  return unknown;
}

void check_value(const std::string& name, const std::vector<Axis>& axes, const Expr& value) {
  if (!value.defined())
    throw UserError(fmt::format("compute \"{}\": the value is undefined", name));
  check_constants(fmt::format("compute \"{}\"", name), value);
  std::vector<Var> known;
  std::vector<std::string> names;
  for (const Axis& axis : axes) {
    known.push_back(axis.var);
    names.push_back(axis.var.name());
  }
  walk(value, [&](const Expr& e) {
    if (auto* r = e.as<Reduce>())
      for (const Axis& axis : r->axes)
        if (contains(known, axis.var))
          throw UserError(fmt::format(
              "compute \"{}\": \"{}\" is an axis of the result and is also reduced over\n"
              "  try: reduce over an axis of its own",
              name, axis.var.name()));
    return true;
  });
  for (const Var& v : dimension_vars(axes, value)) known.push_back(v);
  const Var unknown = first_unknown(value, known);
  if (!unknown.defined()) return;
  throw UserError(fmt::format(
      "compute \"{}\": variable \"{}\" is neither an axis of the result ({}) nor bound by a "
      "reduction around it\n  try: list it among the axes, or reduce over it",
      name, unknown.name(), join(names)));
}

/// Refuses a read outside of its tensor that happens for certain: every point is reached (no
/// select, no condition around it) and the index is linear in the axes, so its ends are attained.
///   y[i] = x[i + 1], i < 8, x of 8   ->   refused: index 8
void check_reads(const std::string& name, const Expr& e, Simplifier& ranges,
                 std::unordered_set<const ExprNode*>& seen) {
  if (!e.defined() || !seen.insert(e.get()).second) return;
  if (auto* s = e.as<Select>()) return check_reads(name, s->condition, ranges, seen);
  if (e.as<Let>()) return;
  if (auto* r = e.as<Reduce>()) {
    if (r->condition.defined()) return;
    for (const Axis& axis : r->axes) {
      const auto extent = as_int(axis.extent);
      if (extent == 0) return;
      if (extent) ranges.set_range(axis.var, Interval::extent(*extent));
    }
  }
  if (auto* l = e.as<Load>()) {
    for (size_t d = 0; d < l->indices.size(); ++d) {
      const auto extent = as_int(l->buffer->shape[d]);
      const Affine form = ranges.affine(l->indices[d]);
      const bool linear = std::all_of(form.terms.begin(), form.terms.end(), [&](const auto& t) {
        return t.atom.template as<VarRef>() && ranges.bounds(t.atom).bounded();
      });
      const Interval all = ranges.bounds(form);
      if (!extent || !linear || !all.bounded() || all.within(0, *extent - 1)) continue;
      throw UserError(
          fmt::format("compute \"{}\": \"{}\" is read outside: index {}, {}, runs over {}, and "
                      "dimension {} has extent {}\n"
                      "  try: select(condition, the read, another value), or axes that stay inside",
                      name, l->buffer->name, d, print(l->indices[d]), print(all), d, *extent));
    }
  }
  map_children(e, [&](const Expr& child) {
    check_reads(name, child, ranges, seen);
    return child;
  });
}

void check_reads(const std::string& name, const std::vector<Axis>& axes, const Expr& value) {
  Simplifier ranges;
  for (const Axis& axis : axes) {
    const auto extent = as_int(axis.extent);
    if (extent == 0) return;
    if (extent) ranges.set_range(axis.var, Interval::extent(*extent));
  }
  std::unordered_set<const ExprNode*> seen;
  check_reads(name, value, ranges, seen);
}

}  // namespace

int64_t Tensor::extent(int d) const {
  if (d < 0 || d >= rank())
    throw UserError(fmt::format("tensor \"{}\" has {} dimensions; dimension {} does not exist",
                                name(), rank(), d));
  auto value = as_int(shape()[d]);
  if (!value)
    throw UserError(
        fmt::format("tensor \"{}\": dimension {} is symbolic ({}); a constant is needed here",
                    name(), d, print(shape()[d])));
  return *value;
}

std::vector<int64_t> Tensor::extents() const {
  std::vector<int64_t> all(rank());
  for (int d = 0; d < rank(); ++d) all[d] = extent(d);
  return all;
}

Expr Tensor::at(std::vector<Expr> indices) const {
  if (!defined()) throw UserError("an undefined tensor is read");
  if (static_cast<int>(indices.size()) != rank())
    throw UserError(fmt::format("tensor \"{}\" has {} dimensions and is read with {} indices",
                                name(), rank(), indices.size()));
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined() || !is_int(indices[d].dtype()))
      throw UserError(
          fmt::format("tensor \"{}\": index {} is {}; an index is an integer", name(), d,
                      indices[d].defined() ? tenon::name(indices[d].dtype()) : "undefined"));
    if (indices[d].dtype() != i64) indices[d] = cast(i64, indices[d]);
  }
  return load(buffer_, std::move(indices));
}

Tensor input(std::string name, DType dtype, std::vector<int64_t> shape) {
  return outside_tensor(std::move(name), dtype, shape, ParamRole::input);
}

Tensor constant(std::string name, DType dtype, std::vector<int64_t> shape) {
  return outside_tensor(std::move(name), dtype, shape, ParamRole::constant);
}

std::vector<Tensor> compute_tuple(std::string name, std::vector<Axis> axes,
                                  std::vector<Expr> values) {
  if (name.empty()) throw UserError("compute: a tensor needs a name");
  if (values.empty()) throw UserError(fmt::format("compute \"{}\": no value is given", name));
  check_axes(name, axes);
  check_points(fmt::format("compute \"{}\"", name), extents_of(axes));
  for (const Expr& value : values) {
    check_value(name, axes, value);
    check_reductions(name, axes, value);
    check_reads(name, axes, value);
  }
  auto formula = std::make_shared<Formula>();
  std::vector<Tensor> tensors;
  for (size_t n = 0; n < values.size(); ++n) {
    BufferNode node;
    node.name = values.size() == 1 ? name : fmt::format("{}.v{}", name, n);
    node.dtype = values[n].dtype();
    for (const Axis& axis : axes) node.shape.push_back(axis.extent);
    node.origin = formula;
    tensors.emplace_back(Buffer(std::move(node)), ParamRole::output);
    formula->outputs.push_back(tensors.back().buffer().weak());
  }
  formula->name = std::move(name);
  formula->axes = std::move(axes);
  formula->values = std::move(values);
  return tensors;
}

Tensor compute(std::string name, std::vector<Axis> axes, Expr value) {
  return compute_tuple(std::move(name), std::move(axes), {std::move(value)})[0];
}

}  // namespace tenon
