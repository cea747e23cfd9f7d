#include "arith/simplify.h"

#include <tenon/ir/ops.h>

#include <algorithm>
#include <numeric>

#include "arith/rules.h"

namespace tenon {
namespace {

bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }

/// Sums, products, // and % of i64 scalars: what linear forms are made of.
bool is_linear(const Expr& e) {
  if (e.type() != Type{i64, 1}) return false;
  if (const auto* n = e.as<Unary>()) return n->op == UnaryOp::neg;
  const auto* n = e.as<Binary>();
  if (!n) return false;
  switch (n->op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
      return true;
    default:
      return false;
  }
}

Expr truth_like(const Expr& e, bool value) {
  return e.lanes() == 1 ? bool_imm(value) : broadcast(bool_imm(value), e.lanes());
}

std::optional<bool> decide(BinaryOp op, const Interval& difference) {  // of b - a
  bool above = difference.min && *difference.min > 0, below = difference.max && *difference.max < 0;
  bool not_below = difference.min && *difference.min >= 0;
  bool not_above = difference.max && *difference.max <= 0;
  bool equal = not_below && not_above;
  switch (op) {
    case BinaryOp::eq:
      return equal ? std::optional(true) : above || below ? std::optional(false) : std::nullopt;
    case BinaryOp::ne:
      return equal ? std::optional(false) : above || below ? std::optional(true) : std::nullopt;
    case BinaryOp::lt:
      return above ? std::optional(true) : not_above ? std::optional(false) : std::nullopt;
    default:
      return not_below ? std::optional(true) : below ? std::optional(false) : std::nullopt;
  }
}

/// g*F + c == 0 has no solution when g does not divide c.
bool never_zero(const Affine& form) {
  int64_t g = 0;
  for (const Affine::Term& t : form.terms) g = std::gcd(g, t.coefficient);
  return g > 1 && form.constant % g != 0;
}

std::vector<int64_t> coefficient_factors(const Affine& form) {
  std::vector<int64_t> out;
  int64_t all = 0;
  for (const Affine::Term& t : form.terms) {
    all = std::gcd(all, t.coefficient);
    if (t.coefficient != INT64_MIN) out.push_back(std::abs(t.coefficient));
  }
  out.push_back(all);
  std::sort(out.begin(), out.end(), std::greater<>());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  while (!out.empty() && out.back() <= 1) out.pop_back();
  return out;
}

}  // namespace

void Simplifier::forget() {
  simplified_.clear();
  forms_.clear();
  facts_.clear();
  seen_vars_.clear();
  let_ranges_.clear();
}

void Simplifier::set_range(const Var& v, const Interval& range) {
  auto [at, fresh] = ranges_.emplace(v, range);
  if (!fresh && at->second == range) return;
  at->second = range;
  if (seen_vars_.count(v.get())) forget();
}

Affine Simplifier::affine(const Expr& e) {
  if (const auto* n = e.as<IntImm>()) return Affine::of(n->value);
  if (e.as<VarRef>()) return atom_or_form(e);
  auto found = forms_.find(e.get());
  if (found != forms_.end()) return found->second.second;
  Affine form = compute_affine(e);
  if (form.overflow) form = Affine::of(e);
  forms_[e.get()] = {e, form};
  return form;
}

Affine Simplifier::compute_affine(const Expr& e) {
  if (!is_linear(e)) return atom_or_form(e);
  if (const auto* n = e.as<Unary>()) return affine(n->a) * -1;
  const auto& n = *e.as<Binary>();
  Affine a = affine(n.a), b = affine(n.b);
  switch (n.op) {
    case BinaryOp::add:
      return collect(a + b);
    case BinaryOp::sub:
      return collect(a - b);
    case BinaryOp::mul:
      if (b.is_constant()) return a * b.constant;
      if (a.is_constant()) return b * a.constant;
      break;
    case BinaryOp::floor_div:
      if (b.is_constant() && b.constant > 0) return divide(std::move(a), b.constant);
      break;
    default:
      if (b.is_constant() && b.constant > 0) return modulo(std::move(a), b.constant);
      break;
  }
  // A product or quotient of variables: an atom of simplified parts.
  Expr atom = binary(n.op, to_expr(a), to_expr(b));
  if (Expr ruled = apply_rules(atom); ruled.defined()) return affine(ruled);
  return Affine::of(structural_equal(atom, e) ? e : atom);
}

Affine Simplifier::atom_or_form(const Expr& e) {
  Expr s = simplify(e);
  if (!s.same_as(e)) return affine(s);
  std::optional<int64_t> value = fact(e).bounds.single();
  return value ? Affine::of(*value) : Affine::of(e);
}

Expr Simplifier::simplify(const Expr& e) {
  if (!e.defined() || e.as<IntImm>() || e.as<FloatImm>()) return e;
  auto found = simplified_.find(e.get());
  if (found != simplified_.end()) return found->second.second;
  Expr out;
  if (const auto* v = e.as<VarRef>()) {
    Interval range = fact(e).bounds;
    out = range.single() && is_int(v->var.type().dtype) ? int_imm(*range.single(), e.dtype()) : e;
  } else {
    out = is_linear(e) ? to_expr(affine(e)) : simplify_general(e);
  }
  if (structural_equal(out, e)) out = e;
  simplified_[e.get()] = {e, out};
  return out;
}

Expr Simplifier::simplify_let(const Expr& e, const Let& let) {
  Expr value = simplify(let.value);
  if (value.as<IntImm>() || value.as<FloatImm>() || value.as<VarRef>()) {
    return simplify(substitute(let.body, {{let.var, value}}));
  }
  let_ranges_.emplace(let.var, bounds(value));
  if (value.type() == Type{i64, 1} && !is_exact(affine(value))) data_vars_[let.var.get()] = true;
  Expr body = simplify(let.body);
  return value.same_as(let.value) && body.same_as(let.body) ? e : tenon::let(let.var, value, body);
}

Expr Simplifier::simplify_general(const Expr& e) {
  if (const auto* n = e.as<Let>()) return simplify_let(e, *n);
  if (const auto* n = e.as<Reduce>()) {
    for (const Axis& a : n->axes) {
      if (auto extent = as_int(a.extent); extent && *extent > 0) {
        set_range(a.var, Interval::extent(*extent));
      }
    }
  }
  Expr out = map_children(e, [this](const Expr& part) { return simplify(part); });
  Expr next = local(out);
  return next.same_as(out) || structural_equal(next, out) ? out : simplify(next);
}

/// One step at the root of an expression whose parts are simplified.
Expr Simplifier::local(const Expr& e) {
  if (Expr out = apply_rules(e); out.defined()) return out;
  if (const auto* n = e.as<Binary>()) {
    if (is_comparison(n->op)) return compare(e, *n);
    if (n->op == BinaryOp::min || n->op == BinaryOp::max) return pick_extreme(e, *n);
    bool trunc = n->op == BinaryOp::trunc_div || n->op == BinaryOp::trunc_mod;
    if (trunc && e.type() == Type{i64, 1}) {
      Interval a = bounds(n->a), b = bounds(n->b);
      if (a.min && *a.min >= 0 && b.min && *b.min > 0) {
        return n->op == BinaryOp::trunc_div ? floor_div(n->a, n->b) : floor_mod(n->a, n->b);
      }
    }
  }
  if (const auto* n = e.as<Unary>(); n && n->op == UnaryOp::abs && is_int(e.dtype())) {
    Interval a = bounds(n->a);
    if (a.min && *a.min >= 0) return n->a;
  }
  return e;
}

bool Simplifier::lane_form(const Expr& e, Affine* form) {
  if (const auto* b = e.as<Broadcast>()) {
    *form = affine(b->value);
    return true;
  }
  const auto* r = e.as<Ramp>();
  if (!r || !as_int(r->stride)) return false;
  Var& lane = lanes_[r->lanes];
  if (!lane.defined()) {
    lane = Var("lane");
    ranges_.emplace(lane, Interval::extent(r->lanes));
  }
  *form = affine(r->base).add(lane, *as_int(r->stride));
  return true;
}

/// Linear forms of both sides of a comparison; a vector's lane number is a variable of its own.
bool Simplifier::lane_forms(const Expr& a, const Expr& b, Affine* fa, Affine* fb) {
  if (a.dtype() != i64) return false;
  if (a.lanes() == 1) {
    *fa = affine(a);
    *fb = affine(b);
    return true;
  }
  return lane_form(a, fa) && lane_form(b, fb);
}

Expr Simplifier::compare(const Expr& e, const Binary& n) {
  if (!is_int(n.a.dtype()) || n.a.dtype() == u64) return e;
  if (n.op == BinaryOp::gt) return binary(BinaryOp::lt, n.b, n.a);
  if (n.op == BinaryOp::ge) return binary(BinaryOp::le, n.b, n.a);
  Affine a, b;
  if (lane_forms(n.a, n.b, &a, &b)) {
    if (!is_exact(a) || !is_exact(b)) return e;
    Affine difference = collect(b - a);
    if (difference.overflow) return e;
    std::optional<bool> known = decide(n.op, bounds(difference));
    if (!known && never_zero(difference)) {
      if (n.op == BinaryOp::eq) known = false;
      if (n.op == BinaryOp::ne) known = true;
    }
    if (known) return truth_like(e, *known);
    return e.lanes() == 1 ? compare_forms(e, n.op, a, b) : e;
  }
  std::optional<bool> known = decide(n.op, bounds(n.b) - bounds(n.a));
  return known ? truth_like(e, *known) : e;
}

/// Terms that stand on both sides cancel, positive ones stand left of < and <= when they come from
/// there, and
///   g*F + R < C   ->   F < q    when every value of R gives the same bound q
Expr Simplifier::compare_forms(const Expr& e, BinaryOp op, const Affine& a, const Affine& b) {
  if (op != BinaryOp::lt && op != BinaryOp::le) return e;
  Affine difference = collect(b - a), left, right;
  for (const Affine::Term& t : difference.terms) {
    if (t.coefficient == INT64_MIN) return e;
    (t.coefficient < 0 ? left : right).terms.push_back({t.atom, std::abs(t.coefficient)});
  }
  if (difference.constant == INT64_MIN) return e;
  bool upper = right.terms.empty(), lower = left.terms.empty();
  if (upper || lower) {
    // upper: F*g + R <= limit; lower: limit <= F*g + R
    const Affine& form = upper ? left : right;
    int64_t limit = upper ? difference.constant : -difference.constant;
    if (op == BinaryOp::lt) limit += upper ? -1 : 1;
    for (int64_t g : coefficient_factors(form)) {
      Affine multiple, rest;
      for (const Affine::Term& t : form.terms) {
        bool divides = t.coefficient % g == 0;
        if (divides)
          multiple.terms.push_back({t.atom, t.coefficient / g});
        else
          rest.terms.push_back(t);
      }
      Interval free = Interval::point(limit) - bounds(rest);
      Interval scaled = upper ? floor_div(free, g) : floor_div(free + Interval::point(g - 1), g);
      std::optional<int64_t> q = scaled.single();
      if (!q || multiple.terms.empty()) continue;
      if (upper) return binary(BinaryOp::lt, to_expr(multiple), int_imm(*q + 1));
      return binary(BinaryOp::le, int_imm(*q), to_expr(multiple));
    }
  }
  if (lower)
    left.constant = -difference.constant;
  else
    right.constant = difference.constant;
  return binary(op, to_expr(left), to_expr(right));
}

Expr Simplifier::pick_extreme(const Expr& e, const Binary& n) {
  if (!is_int(e.dtype()) || e.dtype() == u64) return e;
  bool is_min = n.op == BinaryOp::min;
  Interval difference = bounds(n.b) - bounds(n.a);
  Affine a, b;
  if (lane_forms(n.a, n.b, &a, &b) && is_exact(a) && is_exact(b)) {
    difference = intersect(bounds(collect(b - a)), difference);
  }
  if (difference.min && *difference.min >= 0) return is_min ? n.a : n.b;
  if (difference.max && *difference.max <= 0) return is_min ? n.b : n.a;
  return e;
}

bool Simplifier::prove(const Expr& condition) {
  if (!condition.defined()) return true;
  Expr s = simplify(condition);
  const auto* vector = s.as<Broadcast>();
  return is_true(vector ? vector->value : s);
}

Expr simplify(const Expr& e, const VarRanges& ranges) { return Simplifier(ranges).simplify(e); }

bool prove(const Expr& condition, const VarRanges& ranges) {
  return Simplifier(ranges).prove(condition);
}

}  // namespace tenon
