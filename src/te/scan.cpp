#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include <algorithm>

#include "te/checks.h"
#include "te/combiners.h"
#include "te/formula.h"

namespace tenon {
namespace {

size_t place_of(const std::string& where, const std::vector<Axis>& axes, const Axis& along) {
  for (size_t n = 0; n < axes.size(); ++n)
    if (along.var.defined() && axes[n].var.same_as(along.var)) return n;
  throw UserError(fmt::format("{}: \"{}\", along which it runs, is not one of its axes", where,
                              along.var.defined() ? along.var.name() : ""));
}

/// The buffers that stand for what the scan itself gave, one per state.
std::vector<Buffer> states(const Formula& formula, const std::vector<Expr>& first) {
  std::vector<Expr> shape;
  for (const Axis& axis : formula.axes) shape.push_back(axis.extent);
  std::vector<Buffer> out;
  for (size_t n = 0; n < first.size(); ++n)
    out.emplace_back(fmt::format("{}.before{}", formula.name, n), first[n].dtype(), shape);
  return out;
}

/// A step may not reduce over what the scan has given: that needs all of it at each step.
void check_step(const std::string& where, const Expr& step, const std::vector<Buffer>& previous) {
  walk(step, [&](const Expr& e) {
    const Reduce* r = e.as<Reduce>();
    if (!r) return true;
    walk(e, [&](const Expr& part) {
      const Load* l = part.as<Load>();
      if (l && std::find(previous.begin(), previous.end(), l->buffer) != previous.end())
        throw UserError(
            fmt::format("{}: the step reduces over the element before\n  try: reduce first, in a "
                        "tensor of its own, or keep the partial result as another state",
                        where));
      return true;
    });
    return true;
  });
}

Expr typed(const std::string& where, Expr step, DType t) {
  if (step.defined() && (step.as<IntImm>() || step.as<FloatImm>())) step = literal_as(step, t);
  if (!step.defined() || step.dtype() != t)
    throw UserError(fmt::format("{}: the step gives {}, the first element is {}", where,
                                step.defined() ? name(step.dtype()) : "an undefined value",
                                name(t)));
  return step;
}

}  // namespace

std::vector<Tensor> scan_tuple(
    std::string name, std::vector<Axis> axes, const Axis& along, std::vector<Expr> first,
    const std::function<std::vector<Expr>(const std::vector<Expr>& before)>& step) {
  if (name.empty()) throw UserError("scan: a tensor needs a name");
  const std::string where = fmt::format("scan \"{}\"", name);
  if (first.empty()) throw UserError(fmt::format("{}: no first element is given", where));
  check_axes(where, axes);
  for (const Expr& e : first) check_formula(where, axes, e);
  Formula formula;
  formula.name = std::move(name);
  formula.axes = std::move(axes);
  formula.along = place_of(where, formula.axes, along);
  formula.previous = states(formula, first);
  std::vector<Expr> before, at(formula.axes.begin(), formula.axes.end());
  at[*formula.along] = at[*formula.along] - int_imm(1);
  for (const Buffer& b : formula.previous) before.push_back(load(b, at));
  const std::vector<Expr> next = step(before);
  if (next.size() != first.size())
    throw UserError(fmt::format("{}: the step gives {} elements, {} first ones are given", where,
                                next.size(), first.size()));
  const Expr begins = Expr(along) < int_imm(1);
  for (size_t n = 0; n < first.size(); ++n) {
    const Expr value = typed(where, next[n], first[n].dtype());
    check_step(where, value, formula.previous);
    formula.values.push_back(select(begins, first[n], value));
    check_formula(where, formula.axes, formula.values.back());
  }
  return tensors_of(std::move(formula));
}

Tensor scan(std::string name, std::vector<Axis> axes, const Axis& along, Expr first,
            const std::function<Expr(Expr before)>& step) {
  return scan_tuple(
      std::move(name), std::move(axes), along, {std::move(first)},
      [&](const std::vector<Expr>& before) { return std::vector<Expr>{step(before[0])}; })[0];
}

}  // namespace tenon
