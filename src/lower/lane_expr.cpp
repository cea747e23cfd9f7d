#include "lower/lane_expr.h"

#include <tenon/ir/ops.h>

#include "ir/op_classes.h"

namespace tenon {
Expr both_lanes(const Expr& a, const Expr& b) {
  if (!a.defined()) return b;
  return b.defined() ? a && b : a;
}

Expr to_lanes(const Expr& e, int lanes) { return e.lanes() == lanes ? e : broadcast(e, lanes); }

Expr any_lane(const Expr& mask) {
  return mask.lanes() > 1 ? vector_reduce(BinaryOp::logical_or, mask) : mask;
}

Expr LaneExpr::operator()(const Expr& e) {
  if (!e.defined() || e.as<IntImm>() || e.as<FloatImm>()) return e;
  auto [at, fresh] = memo_.try_emplace(e.get(), e, Expr());
  if (fresh) {
    Expr out = convert(e);
    memo_.at(e.get()).second = out;
    return out;
  }
  return at->second.second;
}

// The index of an access, for buffers that each lane has of its own as well.
Expr LaneExpr::access_index(const Buffer& buffer, const Expr& e) {
  if (!per_lane_.count(buffer)) return index(e);
  return index(e * int_imm(c_.lanes) + Expr(c_.lane));
}
Buffer LaneExpr::access_buffer(const Buffer& buffer) const {
  auto it = per_lane_.find(buffer);
  return it == per_lane_.end() ? buffer : it->second;
}

Expr LaneExpr::convert(const Expr& e) {
  if (const VarRef* n = e.as<VarRef>()) {
    if (c_.loop && n->var.same_as(c_.lane)) return ramp(int_imm(0), int_imm(1), c_.lanes);
    auto it = lets_.find(n->var);
    return it == lets_.end() ? e : it->second;
  }
  if (e.type() == Type{DType::i64, 1} && c_.loop && uses_var(e, c_.lane)) {
    if (Expr out = as_ramp(e); out.defined()) return out;
  }
  if (const Load* n = e.as<Load>()) return convert_load(*n);
  if (const Select* n = e.as<Select>()) return convert_select(*n);
  if (const Let* n = e.as<Let>()) {
    const Expr value = (*this)(n->value);
    const Var var(n->var.name(), value.type());
    lets_[n->var] = var;
    return let(var, value, (*this)(n->body));
  }
  if (const Call* n = e.as<Call>()) {
    std::vector<Expr> args;
    int lanes = 1;
    for (const Expr& a : n->args) args.push_back((*this)(a));
    for (const Expr& a : args) lanes = std::max(lanes, a.lanes());
    for (Expr& a : args) a = to_lanes(a, lanes);
    return call(n->fn, std::move(args));
  }
  if (const Binary* n = e.as<Binary>(); n && divides_integers(n->op)) {
    return binary(n->op, (*this)(n->a), safe_divisor((*this)(n->b)));
  }
  return map_children(e, [&](const Expr& part) { return (*this)(part); });
}

// base + stride*lane
Expr LaneExpr::as_ramp(const Expr& e) {
  Affine form = simplifier_.affine(e);
  const int64_t stride = form.coefficient(c_.lane);
  form.add(c_.lane, -stride);
  if (form.overflow) return {};
  for (const Affine::Term& t : form.terms) {
    if (uses_var(t.atom, c_.lane) || (*this)(t.atom).lanes() > 1) return {};
  }
  const Expr base = (*this)(to_expr(form));
  return stride == 0 ? base : ramp(base, int_imm(stride), c_.lanes);
}

// Lanes that are off divide by 1.
Expr LaneExpr::safe_divisor(const Expr& divisor) const {
  const Expr on = both_lanes(both_lanes(c_.tail, c_.guard), c_.chosen);
  const Expr one = int_imm(1, divisor.dtype());
  if (!on.defined() || as_int(divisor)) return divisor;
  return divisor.lanes() == 1 ? select(any_lane(on), divisor, one)
                              : select(on, divisor, to_lanes(one, divisor.lanes()));
}

bool LaneExpr::in_bounds(const Buffer& buffer, const Expr& index) {
  return simplifier_.prove(int_imm(0) <= index && index < buffer->shape[0]);
}

// Where all lanes are off, an element that they share may be one that no iteration reads, and so
// was never written. It was where lane 0 is on in the first iteration that reads the same element.
bool LaneExpr::may_be_unwritten(const Buffer& buffer, const Expr& index) {
  const auto outside = scope_.outside.find(buffer.get());
  if (!c_.first.defined() || outside == scope_.outside.end()) return false;
  Expr on = c_.first;
  for (size_t n = scope_.loops.size(); n-- > outside->second;) {
    const auto& [var, min] = scope_.loops[n];
    if (!uses_var(index, var)) on = substitute(on, {{var, min}});
  }
  return !simplifier_.prove(on);
}

Expr LaneExpr::convert_load(const Load& n) {
  const Expr scalar_index = simplifier_.simplify(n.indices[0]);
  const Expr at = access_index(n.buffer, scalar_index);
  const Buffer buffer = access_buffer(n.buffer);
  Expr on = n.mask.defined() ? (*this)(n.mask) : Expr();
  if (buffer->scope == Scope::reg) {
    const bool padded = partial_.count(n.buffer.get()) || per_lane_.count(n.buffer);
    if (at.lanes() > 1 && padded) on = both_lanes(on, c_.tail);
    if (at.lanes() > 1) on = both_lanes(on, c_.guard);
  } else if (at.lanes() > 1) {
    on = both_lanes(on, both_lanes(c_.tail, c_.guard));
    if (c_.chosen.defined() && !in_bounds(n.buffer, scalar_index)) on = both_lanes(on, c_.chosen);
  } else if (c_.guard.defined() || c_.chosen.defined()) {
    if (!in_bounds(n.buffer, scalar_index))
      on = both_lanes(on, any_lane(both_lanes(c_.guard, c_.chosen)));
    else if (may_be_unwritten(n.buffer, scalar_index))
      on = both_lanes(on, any_lane(c_.guard));
  }
  if (on.defined()) on = to_lanes(on, at.lanes());
  return load(buffer, {at}, on);
}

Expr LaneExpr::convert_select(const Select& n) {
  const Expr condition = (*this)(n.condition);
  const Expr yes = side(n.yes, condition), no = side(n.no, !condition);
  return select(condition, yes, no);
}
Expr LaneExpr::side(const Expr& e, const Expr& condition) {
  bool loads = false;
  walk(e, [&](const Expr& x) {
    const Binary* n = x.as<Binary>();
    return !(loads |= x.as<Load>() || (n && divides_integers(n->op)));
  });
  if (!loads) return (*this)(e);
  LaneContext inner = c_;
  inner.chosen = both_lanes(c_.chosen, condition);
  return LaneExpr(std::move(inner), simplifier_, lets_, per_lane_, partial_, scope_)(e);
}

}  // namespace tenon
