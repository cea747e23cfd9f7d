#include <tenon/ir/ops.h>

#include <algorithm>

#include "arith/simplify.h"

namespace tenon {
namespace {

Interval type_range(DType t) {
  if (is_float(t) || t == i64) return Interval::all();
  if (t == u64) return {0, std::nullopt};
  return {min_int(t), max_int(t)};
}

/// What arithmetic in type t makes of a mathematical result: it stays or it may wrap anywhere.
Interval wrapped(const Interval& exact, DType t) {
  if (t == i64) return exact;
  Interval range = type_range(t);
  if (t == u64) return range;
  return exact.within(*range.min, *range.max) ? exact : range;
}

Interval truth(bool maybe_false, bool maybe_true) {
  return {maybe_false ? 0 : 1, maybe_true ? 1 : 0};
}

Interval compare_bounds(BinaryOp op, const Interval& a, const Interval& b) {
  auto below = [](const Interval& x, const Interval& y) {
    return x.max && y.min && *x.max < *y.min;
  };
  auto not_above = [](const Interval& x, const Interval& y) {
    return x.max && y.min && *x.max <= *y.min;
  };
  bool apart = below(a, b) || below(b, a);
  bool equal = a.single() && a.single() == b.single();
  switch (op) {
    case BinaryOp::eq:
      return truth(!equal, !apart);
    case BinaryOp::ne:
      return truth(!apart, !equal);
    case BinaryOp::lt:
      return truth(!below(a, b), !not_above(b, a));
    case BinaryOp::le:
      return truth(!not_above(a, b), !below(b, a));
    case BinaryOp::gt:
      return truth(!below(b, a), !not_above(a, b));
    default:
      return truth(!not_above(b, a), !below(a, b));
  }
}

Interval trunc_div_bounds(const Interval& a, int64_t divisor) {
  Interval out;
  if (a.min) out.min = *a.min / divisor;
  if (a.max) out.max = *a.max / divisor;
  return out;
}

Interval binary_bounds(BinaryOp op, const Interval& a, const Interval& b, DType t) {
  std::optional<int64_t> divisor = b.single();
  bool positive = divisor && *divisor > 0;
  switch (op) {
    case BinaryOp::add:
      return wrapped(a + b, t);
    case BinaryOp::sub:
      return wrapped(a - b, t);
    case BinaryOp::mul:
      return wrapped(a * b, t);
    case BinaryOp::min:
      return min(a, b);
    case BinaryOp::max:
      return max(a, b);
    case BinaryOp::floor_div:
      if (positive) return floor_div(a, *divisor);
      if (b.min && *b.min > 0 && a.min && *a.min >= 0) return {0, a.max};
      return type_range(t);
    case BinaryOp::floor_mod:
      if (positive) return floor_mod(a, *divisor);
      if (b.min && *b.min > 0) return {0, b.max ? std::optional(*b.max - 1) : std::nullopt};
      return type_range(t);
    case BinaryOp::trunc_div:
      return positive ? trunc_div_bounds(a, *divisor) : type_range(t);
    case BinaryOp::trunc_mod:
      if (positive && a.min && *a.min >= 0) return floor_mod(a, *divisor);
      return positive ? Interval{1 - *divisor, *divisor - 1} : type_range(t);
    case BinaryOp::bit_and:
      if (b.min && *b.min >= 0) return {0, b.max};
      return type_range(t);
    case BinaryOp::shr:
      return divisor && *divisor >= 0 && *divisor < 63 ? floor_div(a, int64_t{1} << *divisor)
                                                       : type_range(t);
    case BinaryOp::logical_and:
      return truth(!(a.single() == 1 && b.single() == 1), !(a.single() == 0 || b.single() == 0));
    case BinaryOp::logical_or:
      return truth(!(a.single() == 1 || b.single() == 1), !(a.single() == 0 && b.single() == 0));
    default:
      return type_range(t);
  }
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }

constexpr int kMaxAlternatives = 3;

}  // namespace

Interval Simplifier::bounds(const Affine& form, int depth) {
  if (form.overflow) return Interval::all();
  Interval sum = Interval::point(form.constant);
  for (const Affine::Term& t : form.terms) {
    sum = sum + fact(t.atom).bounds * Interval::point(t.coefficient);
  }
  if (depth == kMaxAlternatives || form.terms.size() < 2) return sum;
  // k*min(a, b) + rest is min(k*a + rest, k*b + rest): what a and b share with the rest cancels.
  for (const Affine::Term& t : form.terms) {
    const auto* extreme = t.atom.as<Binary>();
    const auto* choice = t.atom.as<Select>();
    bool is_min = extreme && extreme->op == BinaryOp::min;
    bool is_max = extreme && extreme->op == BinaryOp::max;
    if (!is_min && !is_max && !choice) continue;
    Affine rest = form;
    rest.add(t.atom, -t.coefficient);
    Interval a =
        bounds(rest + affine(choice ? choice->yes : extreme->a) * t.coefficient, depth + 1);
    Interval b = bounds(rest + affine(choice ? choice->no : extreme->b) * t.coefficient, depth + 1);
    if (choice) return intersect(sum, hull(a, b));
    return intersect(sum, is_min == (t.coefficient > 0) ? min(a, b) : max(a, b));
  }
  return sum;
}

Interval Simplifier::bounds(const Expr& e) {
  return e.type() == Type{i64, 1} ? bounds(affine(e)) : fact(e).bounds;
}

const Simplifier::Fact& Simplifier::fact(const Expr& atom) {
  auto found = facts_.find(atom.get());
  if (found != facts_.end()) return found->second;
  Fact out = compute_fact(atom);
  out.key = atom;
  return facts_[atom.get()] = std::move(out);
}

Simplifier::Fact Simplifier::compute_fact(const Expr& e) {
  Fact out;
  out.bounds = compute_bounds(e);
  auto index = [&](const Expr& part) { return fact(part).index; };
  if (const auto* v = e.as<VarRef>()) {
    out.index = !data_vars_.count(v->var.get());
  } else if (const auto* n = e.as<Binary>()) {
    out.index = n->op <= BinaryOp::max && n->op != BinaryOp::div && index(n->a) && index(n->b);
  } else if (const auto* u = e.as<Unary>()) {
    out.index = u->op == UnaryOp::neg && index(u->a);
  } else if (const auto* s = e.as<Select>()) {
    out.index = index(s->yes) && index(s->no);
  } else {
    out.index = e.as<IntImm>() != nullptr;
  }
  out.index = out.index && e.type() == Type{i64, 1};
  return out;
}

Interval Simplifier::compute_bounds(const Expr& e) {
  DType t = e.dtype();
  if (is_float(t)) return Interval::all();
  if (const auto* n = e.as<IntImm>())
    return t == u64 && n->value < 0 ? type_range(t) : Interval::point(n->value);
  if (const auto* v = e.as<VarRef>()) {
    seen_vars_[v->var.get()] = true;
    const auto& declared = v->var.range();
    const Interval all = declared ? Interval{declared->low, declared->high} : type_range(t);
    for (const VarRanges* known : {&ranges_, &let_ranges_}) {
      auto found = known->find(v->var);
      if (found != known->end()) return intersect(found->second, all);
    }
    return all;
  }
  if (const auto* n = e.as<Binary>()) {
    if (is_float(n->a.dtype()) || n->a.dtype() == u64) return type_range(t);
    Interval a = bounds(n->a), b = bounds(n->b);
    return is_comparison(n->op) ? compare_bounds(n->op, a, b) : binary_bounds(n->op, a, b, t);
  }
  if (const auto* n = e.as<Unary>()) {
    if (is_float(n->a.dtype())) return type_range(t);
    Interval a = bounds(n->a);
    if (n->op == UnaryOp::neg) return wrapped(Interval::point(0) - a, t);
    if (n->op == UnaryOp::abs) return wrapped(max(a, Interval::point(0) - a), t);
    if (n->op == UnaryOp::logical_not) return Interval::point(1) - a;
    return type_range(t);
  }
  if (const auto* s = e.as<Select>()) return hull(bounds(s->yes), bounds(s->no));
  if (const auto* c = e.as<Cast>()) {
    return is_float(c->value.dtype()) ? type_range(t) : wrapped(bounds(c->value), t);
  }
  if (const auto* l = e.as<Let>()) {
    let_ranges_.emplace(l->var, bounds(l->value));
    return bounds(l->body);
  }
  if (const auto* r = e.as<Ramp>()) {
    return wrapped(bounds(r->base) + bounds(r->stride) * Interval{0, r->lanes - 1}, t);
  }
  if (const auto* b = e.as<Broadcast>()) return bounds(b->value);
  if (const auto* s = e.as<Shuffle>()) return bounds(s->value);
  if (const auto* r = e.as<VectorReduce>()) {
    return r->op == BinaryOp::min || r->op == BinaryOp::max ? bounds(r->value) : type_range(t);
  }
  return type_range(t);  // loads, calls, reductions, bitcasts: data
}

Interval bounds(const Expr& e, const VarRanges& ranges) { return Simplifier(ranges).bounds(e); }

}  // namespace tenon
