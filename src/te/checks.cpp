#include "te/checks.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <unordered_set>

#include "arith/simplify.h"
#include "ir/op_classes.h"

namespace tenon {
namespace {

/// So many points fit 64-bit index arithmetic with room to spare.
constexpr int64_t kMostPoints = int64_t{1} << 56;

/// Symbolic extents stand for numbers and may occur anywhere.
std::vector<Var> symbols_in_value(const Expr& value) {
  std::vector<Var> found;
  walk(value, [&](const Expr& e) {
    const VarRef* v = e.as<VarRef>();
    if (v && v->var.is_symbol()) found.push_back(v->var);
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

/// Refuses a read outside of its tensor that happens for certain: every point is reached (no
/// select, no condition around it) and the index is linear in the axes, so its ends are attained.
///   y[i] = x[i + 1], i < 8, x of 8   ->   refused: index 8
void check_reads(const std::string& where, const Expr& e, Simplifier& ranges,
                 std::unordered_set<const ExprNode*>& seen) {
  if (!e.defined() || !seen.insert(e.get()).second) return;
  if (auto* s = e.as<Select>()) return check_reads(where, s->condition, ranges, seen);
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
          fmt::format("{}: \"{}\" is read outside: index {}, {}, runs over {}, and "
                      "dimension {} has extent {}\n"
                      "  try: select(condition, the read, another value), or axes that stay inside",
                      where, l->buffer->name, d, print(l->indices[d]), print(all), d, *extent));
    }
  }
  map_children(e, [&](const Expr& child) {
    check_reads(where, child, ranges, seen);
    return child;
  });
}

void check_reads(const std::string& where, const std::vector<Axis>& axes, const Expr& value) {
  Simplifier ranges;
  for (const Axis& axis : axes) {
    const auto extent = as_int(axis.extent);
    if (extent == 0) return;
    if (extent) ranges.set_range(axis.var, Interval::extent(*extent));
  }
  std::unordered_set<const ExprNode*> seen;
  check_reads(where, value, ranges, seen);
}

/// An extent is a constant or a dimension known at the call, never another axis.
void check_extents(const std::string& where, const std::vector<Axis>& axes, const Expr& value) {
  std::vector<Axis> all = axes;
  walk(value, [&](const Expr& e) {
    if (auto* r = e.as<Reduce>()) all.insert(all.end(), r->axes.begin(), r->axes.end());
    return true;
  });
  for (const Axis& axis : all)
    for (const Axis& other : all)
      if (uses_var(axis.extent, other.var))
        throw UserError(
            fmt::format("{}: the extent of axis \"{}\", {}, speaks of axis \"{}\"\n  try: the "
                        "largest extent, and "
                        "a condition: {{.condition = {} < {}}}",
                        where, axis.var.name(), print(axis.extent), other.var.name(),
                        axis.var.name(), print(axis.extent)));
  for (const Axis& axis : all)
    check_extent(fmt::format("{}: axis \"{}\"", where, axis.var.name()), axis.extent);
}

void check_value(const std::string& where, const std::vector<Axis>& axes, const Expr& value) {
  if (!value.defined()) throw UserError(fmt::format("{}: the value is undefined", where));
  check_constants(where, value);
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
          throw UserError(
              fmt::format("{}: \"{}\" is an axis of the result and is also reduced over\n"
                          "  try: reduce over an axis of its own",
                          where, axis.var.name()));
    return true;
  });
  for (const Var& v : symbols_in_value(value)) known.push_back(v);
  const Var unknown = first_unknown(value, known);
  if (!unknown.defined()) return;
  throw UserError(
      fmt::format("{}: variable \"{}\" is neither an axis of the result ({}) nor bound by a "
                  "reduction around it\n  try: list it among the axes, or reduce over it",
                  where, unknown.name(), join(names)));
}

std::vector<Expr> extents_of(const std::vector<Axis>& axes) {
  std::vector<Expr> extents;
  for (const Axis& axis : axes) extents.push_back(axis.extent);
  return extents;
}

/// The points of each reduction, over all points of the formula.
void check_reductions(const std::string& where, const std::vector<Axis>& axes, const Expr& value) {
  walk(value, [&](const Expr& e) {
    if (const Reduce* reduce = e.as<Reduce>()) {
      std::vector<Expr> extents = extents_of(axes);
      for (const Axis& axis : reduce->axes) extents.push_back(axis.extent);
      check_points(where, extents, Points::iterations);
    }
    return true;
  });
}

bool shifts(BinaryOp op) { return op == BinaryOp::shl || op == BinaryOp::shr; }

void check_node(const std::string& where, const Binary& n) {
  const std::optional<int64_t> b = as_int(n.b);
  if (!b) return;
  if (divides_integers(n.op) && *b == 0)
    throw UserError(
        fmt::format("{}: {} of {} by the constant 0 has no value\n  try: another divisor, or "
                    "select(condition, the division, another value) with a divisor that is not 0",
                    where, name(n.op), print(n.a)));
  const int width = 8 * byte_size(n.a.dtype());
  if (shifts(n.op) && (*b < 0 || *b >= width))
    throw UserError(
        fmt::format("{}: {} of {} by the constant {}: {} has {} bits, so it is shifted by 0 to {}",
                    where, name(n.op), print(n.a), *b, name(n.a.dtype()), width, width - 1));
}

}  // namespace

std::string extents_text(const std::vector<Expr>& extents) {
  std::vector<std::string> parts;
  for (const Expr& part : extents) parts.push_back(print(part));
  return join(parts, " x ");
}

void check_extent(const std::string& where, const Expr& extent) {
  if (!extent.defined() || extent.type() != Type{i64, 1})
    throw UserError(fmt::format("{} has an extent that is {}; an extent is an i64", where,
                                extent.defined() ? name(extent.dtype()) : "undefined"));
  for (const Var& v : free_vars(extent)) {
    if (!v.is_symbol())
      throw UserError(
          fmt::format("{} has extent {}, and \"{}\" is no symbolic extent\n"
                      "  try: Var {} = symbol(\"{}\")",
                      where, print(extent), v.name(), v.name(), v.name()));
  }
  const Interval range = bounds(extent);
  if (range.min && *range.min >= 0) return;
  if (as_int(extent))
    throw UserError(fmt::format("{} has extent {}; extents are 0 or more", where, print(extent)));
  throw UserError(
      fmt::format("{} has extent {}, which is in {}; extents are 0 or more\n"
                  "  try: a symbol with a higher low end: symbol(\"n\", {{.low = 2}})",
                  where, print(extent), print(range)));
}

void check_points(const std::string& where, const std::vector<Expr>& extents, Points points_of) {
  int64_t points = 1;
  for (const Expr& e : extents) {
    std::optional<int64_t> extent = as_int(e);
    if (!extent && points_of == Points::memory) extent = bounds(e).max.value_or(INT64_MAX);
    if (!extent || *extent <= 0) continue;
    if (__builtin_mul_overflow(points, *extent, &points) || points > kMostPoints) {
      throw UserError(fmt::format(
          "{}: extents of {} are too many points; at most 2^56 can be counted{}", where,
          extents_text(extents), as_int(e) ? "" : "\n  try: symbols with a lower high end"));
    }
  }
}

void check_axes(const std::string& where, const std::vector<Axis>& axes) {
  for (size_t n = 0; n < axes.size(); ++n) {
    if (!axes[n].var.defined() || axes[n].var.name().empty() || !axes[n].extent.defined())
      throw UserError(fmt::format("{}: axis {} has no name or no extent", where, n));
    const std::vector<Var> vars = free_vars(axes[n].extent);  // others: check_formula
    if (std::all_of(vars.begin(), vars.end(), [](const Var& v) { return v.is_symbol(); }))
      check_extent(fmt::format("{}: axis \"{}\"", where, axes[n].var.name()), axes[n].extent);
    for (size_t m = 0; m < n; ++m)
      if (axes[m].var.same_as(axes[n].var))
        throw UserError(fmt::format("{}: axis \"{}\" is given twice, as axis {} and axis {}", where,
                                    axes[n].var.name(), m, n));
  }
  check_points(where, extents_of(axes), Points::memory);
}

void check_constants(const std::string& where, const Expr& value) {
  walk(value, [&](const Expr& e) {
    if (const Binary* n = e.as<Binary>()) check_node(where, *n);
    return true;
  });
}

void check_formula(const std::string& where, const std::vector<Axis>& axes, const Expr& value) {
  check_value(where, axes, value);
  check_extents(where, axes, value);
  check_reductions(where, axes, value);
  check_reads(where, axes, value);
}

}  // namespace tenon
