#include "arith/region.h"

#include <tenon/ir/ops.h>

#include <algorithm>
#include <numeric>

namespace tenon {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 48;  // beyond it a box is of no use to anybody

/// Regions of index expressions with respect to one set of inner variables.
class RegionFinder {
 public:
  RegionFinder(const VarRanges& inner, Simplifier& facts) : inner_(inner), facts_(facts) {
    for (const auto& [var, range] : inner_) facts_.set_range(var, range);
  }

  std::optional<DimRegion> find(const Expr& index) {
    if (const auto* r = index.as<Ramp>()) return of_ramp(*r);
    if (const auto* b = index.as<Broadcast>()) return find(b->value);
    if (index.lanes() != 1) return std::nullopt;
    std::optional<DimRegion> out = of_form(facts_.affine(index));
    Interval all = facts_.bounds(index);
    if (!all.bounded() || *all.max - *all.min >= kMaxExtent) return out;
    int64_t extent = *all.max - *all.min + 1;
    if (!out || extent <= out->extent) return DimRegion{int_imm(*all.min), extent};
    return out;
  }

 private:
  bool varies(const Expr& e) const {
    std::vector<Var> vars = free_vars(e);
    return std::any_of(vars.begin(), vars.end(), [&](const Var& v) { return inner_.count(v) > 0; });
  }

  std::optional<DimRegion> of_ramp(const Ramp& r) {
    std::optional<DimRegion> base = find(r.base);
    std::optional<int64_t> stride = as_int(r.stride);
    if (!base || !stride) return std::nullopt;
    int64_t reach = *stride * (r.lanes - 1);
    if (reach < 0) base->min = facts_.simplify(base->min + reach);
    base->extent += std::abs(reach);
    return base;
  }

  std::optional<DimRegion> of_form(const Affine& form) {
    Affine low = Affine::of(form.constant);
    int64_t span = 0;
    for (const Affine::Term& t : form.terms) {
      if (!varies(t.atom)) {
        low.add(t.atom, t.coefficient);
        continue;
      }
      std::optional<DimRegion> part = of_atom(t.atom);
      int64_t reach;
      if (!part || __builtin_mul_overflow(part->extent - 1, std::abs(t.coefficient), &reach)) {
        return std::nullopt;
      }
      low.add(facts_.affine(part->min), t.coefficient);
      if (t.coefficient < 0) low.add(-reach);
      span += reach;
      if (span >= kMaxExtent || reach >= kMaxExtent) return std::nullopt;
    }
    if (low.overflow) return std::nullopt;
    return DimRegion{facts_.simplify(to_expr(low)), span + 1};
  }

  std::optional<DimRegion> of_atom(const Expr& atom) {
    if (const auto* v = atom.as<VarRef>()) return constant(facts_.bounds(v->var));
    std::optional<DimRegion> out;
    if (const auto* n = atom.as<Binary>()) {
      std::optional<int64_t> divisor = as_int(n->b);
      if (n->op == BinaryOp::floor_div && divisor && *divisor > 0)
        out = of_quotient(n->a, *divisor);
      if (n->op == BinaryOp::floor_mod && divisor && *divisor > 0)
        out = of_remainder(n->a, *divisor);
      if (n->op == BinaryOp::min || n->op == BinaryOp::max) out = of_extreme(*n);
    } else if (const auto* s = atom.as<Select>()) {
      std::optional<DimRegion> yes = find(s->yes), no = find(s->no);
      if (yes && no) out = unite(*yes, *no, facts_);
    }
    return out ? out : constant(facts_.bounds(atom));
  }

  static std::optional<DimRegion> constant(const Interval& range) {
    if (!range.bounded() || *range.max - *range.min >= kMaxExtent) return std::nullopt;
    return DimRegion{int_imm(*range.min), *range.max - *range.min + 1};
  }

  /// The largest (min mod divisor) that the coefficients of `min` allow.
  int64_t largest_residue(const Affine& min, int64_t divisor) {
    int64_t g = divisor;
    for (const Affine::Term& t : min.terms) g = std::gcd(g, t.coefficient);
    return divisor - g + floor_mod(min.constant, g);
  }

  /// [m, m+e) // d starts at m//d; an m that is not aligned makes it reach one further.
  std::optional<DimRegion> of_quotient(const Expr& dividend, int64_t divisor) {
    std::optional<DimRegion> part = of_form(facts_.affine(dividend));
    if (!part) return std::nullopt;
    Affine min = facts_.affine(part->min);
    int64_t last = (largest_residue(min, divisor) + part->extent - 1) / divisor;
    return DimRegion{to_expr(facts_.divide(min, divisor)), last + 1};
  }

  /// [m, m+e) % d is an interval when it cannot wrap, else all of [0, d).
  std::optional<DimRegion> of_remainder(const Expr& dividend, int64_t divisor) {
    std::optional<DimRegion> part = of_form(facts_.affine(dividend));
    DimRegion whole{int_imm(0), divisor};
    if (!part) return whole;
    Affine min = facts_.affine(part->min);
    if (largest_residue(min, divisor) + part->extent - 1 >= divisor) return whole;
    return DimRegion{to_expr(facts_.modulo(min, divisor)), part->extent};
  }

  /// min(a, b) starts at the smaller start and is no longer than the longer of both; max likewise.
  std::optional<DimRegion> of_extreme(const Binary& n) {
    std::optional<DimRegion> a = find(n.a), b = find(n.b);
    if (!a || !b) return std::nullopt;
    return DimRegion{facts_.simplify(binary(n.op, a->min, b->min)), std::max(a->extent, b->extent)};
  }

  const VarRanges& inner_;
  Simplifier& facts_;
};

/// Walks a statement and unites the boxes of all accesses to one buffer.
class Accesses {
 public:
  Accesses(const Buffer& buffer, bool reads, Simplifier& facts)
      : buffer_(buffer), reads_(reads), facts_(facts) {}

  void walk(const Stmt& s) {
    if (!s.defined()) return;
    std::visit([&](const auto& node) { visit(node); }, s.node().v);
  }
  Touched result() && { return std::move(out_); }

 private:
  void visit(const For& loop) {
    expr(loop.min);
    expr(loop.extent);
    std::optional<int64_t> low = as_int(loop.min), extent = as_int(loop.extent);
    Interval range =
        extent ? Interval{0, std::max<int64_t>(*extent, 1) - 1} : Interval{0, std::nullopt};
    if (low) {
      inner_[loop.var] = range + Interval::point(*low);
    } else {  // from min on: the distance from it is what varies
      Var distance(loop.var.name());
      inner_[distance] = range;
      values_[loop.var] = substitute(loop.min, values_) + distance;
    }
    walk(loop.body);
  }
  void visit(const Store& s) {
    exprs(s.indices);
    expr(s.value);
    expr(s.mask);
    if (!reads_ && s.buffer.same_as(buffer_)) access(s.indices);
  }
  void visit(const Seq& s) {
    for (const Stmt& part : s.stmts) walk(part);
  }
  void visit(const If& s) {
    expr(s.condition);
    walk(s.then_case);
    walk(s.else_case);
  }
  void visit(const Allocate& s) { walk(s.body); }
  void visit(const Evaluate& s) { expr(s.value); }
  void visit(const LetStmt& s) {
    expr(s.value);
    let(s.var, s.value);
    walk(s.body);
  }
  void visit(const Barrier&) {}
  void visit(const PrefetchLine&) {}
  void visit(const Stage& s) {
    for (const AxisBinding& b : s.axes) values_[b.axis.var] = substitute(b.value, values_);
    expr(s.spatial_guard);
    expr(s.reduce_guard);
    exprs(s.indices);
    exprs(s.values);
    exprs(s.init);
    if (reads_) return;
    for (const Buffer& b : s.outputs) {
      if (b.same_as(buffer_)) access(s.indices);
    }
  }

  void let(const Var& var, const Expr& value) {
    if (var.type() == Type{i64, 1}) values_[var] = substitute(value, values_);
  }
  void exprs(const std::vector<Expr>& parts) {
    for (const Expr& e : parts) expr(e);
  }
  void expr(const Expr& e) {
    if (!reads_ || !e.defined()) return;
    tenon::walk(e, [&](const Expr& part) {
      if (const auto* l = part.as<Let>()) let(l->var, l->value);
      const auto* l = part.as<Load>();
      if (l && l->buffer.same_as(buffer_)) access(l->indices);
      return true;
    });
  }

  void access(const std::vector<Expr>& indices) {
    RegionFinder finder(inner_, facts_);
    Box box;
    for (size_t d = 0; d < indices.size(); ++d) {
      std::optional<DimRegion> region = fit(d, finder.find(substitute(indices[d], values_)));
      if (!region) unknown_ = true;
      box.push_back(region.value_or(DimRegion{int_imm(0), 1}));
    }
    out_.box = !out_.any ? std::optional(box) : out_.box ? join(*out_.box, box) : std::nullopt;
    out_.any = true;
    if (unknown_) out_.box = std::nullopt;
  }

  /// All of a dimension where its region is unknown or no smaller.
  std::optional<DimRegion> fit(size_t d, std::optional<DimRegion> region) const {
    std::optional<int64_t> extent = as_int(buffer_->shape[d]);
    if (!extent || (region && region->extent < *extent)) return region;
    return DimRegion{int_imm(0), std::max<int64_t>(*extent, 1)};
  }

  std::optional<Box> join(const Box& a, const Box& b) {
    Box out;
    for (size_t d = 0; d < a.size(); ++d) {
      std::optional<DimRegion> region = fit(d, unite(a[d], b[d], facts_));
      if (!region) return std::nullopt;
      out.push_back(*region);
    }
    return out;
  }

  const Buffer& buffer_;
  bool reads_, unknown_ = false;
  Simplifier& facts_;
  VarRanges inner_;
  VarMap values_;  // axes, lets and shifted loops in terms of outer variables and inner_
  Touched out_;
};

}  // namespace

std::optional<DimRegion> unite(const DimRegion& a, const DimRegion& b, Simplifier& facts) {
  Affine low = facts.affine(a.min);
  Affine distance = facts.affine(b.min) - low;
  if (distance.is_constant()) {
    int64_t d = distance.constant, below = std::min<int64_t>(d, 0);
    return DimRegion{to_expr(low.add(below)), std::max(a.extent, d + b.extent) - below};
  }
  // The start is the smaller one; how far apart they can be says how long it gets.
  Interval apart = facts.bounds(distance), first = facts.bounds(a.min),
           second = facts.bounds(b.min);
  std::optional<DimRegion> out;
  if (apart.within(-kMaxExtent, kMaxExtent)) {
    int64_t extent = std::max({a.extent, b.extent, *apart.max + b.extent, a.extent - *apart.min});
    out = DimRegion{facts.simplify(min(a.min, b.min)), extent};
  }
  Interval all = hull(first + Interval{0, a.extent - 1}, second + Interval{0, b.extent - 1});
  if (!all.within(-kMaxExtent, kMaxExtent)) return out;
  int64_t extent = *all.max - *all.min + 1;
  if (!out || extent <= out->extent) out = DimRegion{int_imm(*all.min), extent};
  return out;
}

std::optional<Box> unite(const Box& a, const Box& b, Simplifier& facts) {
  Box out;
  for (size_t d = 0; d < a.size(); ++d) {
    std::optional<DimRegion> region = unite(a[d], b[d], facts);
    if (!region) return std::nullopt;
    out.push_back(*region);
  }
  return out;
}

std::optional<DimRegion> region_of(const Expr& index, const VarRanges& inner, Simplifier& facts) {
  return RegionFinder(inner, facts).find(index);
}

std::optional<Box> box_of(const std::vector<Expr>& indices, const VarRanges& inner,
                          Simplifier& facts) {
  Box out;
  for (const Expr& index : indices) {
    std::optional<DimRegion> region = region_of(index, inner, facts);
    if (!region) return std::nullopt;
    out.push_back(*region);
  }
  return out;
}

Touched reads_of(const Stmt& s, const Buffer& buffer, Simplifier& facts) {
  Accesses accesses(buffer, true, facts);
  accesses.walk(s);
  return std::move(accesses).result();
}

Touched writes_of(const Stmt& s, const Buffer& buffer, Simplifier& facts) {
  Accesses accesses(buffer, false, facts);
  accesses.walk(s);
  return std::move(accesses).result();
}

}  // namespace tenon
