#include "lower/touched.h"

#include <tenon/ir/visit.h>

#include <algorithm>
#include <set>

#include "arith/region.h"
#include "lower/util.h"

namespace tenon {
namespace {

// The variables bound inside `body`, the vectorised ones apart.
struct InnerVars {
  std::set<const VarNode*> all, vectorised;
  std::vector<Var> list;

  explicit InnerVars(const Stmt& body) {
    walk(
        body,
        [&](const Stmt& x) {
          const For* loop = x.as<For>();
          if (loop) add(loop->var);
          if (loop && makes_lanes(loop->mark)) vectorised.insert(loop->var.get());
          if (const LetStmt* n = x.as<LetStmt>()) add(n->var);
          return true;
        },
        nullptr);
  }

 private:
  void add(const Var& v) {
    if (all.insert(v.get()).second) list.push_back(v);
  }
};

bool uses_any(const Expr& e, const std::set<const VarNode*>& vars) {
  const std::vector<Var> free = free_vars(e);
  return std::any_of(free.begin(), free.end(), [&](const Var& v) { return vars.count(v.get()); });
}

bool uses_others(const Expr& e, const std::set<const VarNode*>& vars) {
  const std::vector<Var> free = free_vars(e);
  return std::any_of(free.begin(), free.end(), [&](const Var& v) { return !vars.count(v.get()); });
}

// For a quotient or remainder of variables inside and outside: (f.o*4 + f.i) // 6.
std::optional<Side> side_of_region(const Expr& index, const InnerVars& inner,
                                   Simplifier& simplifier) {
  VarRanges ranges;
  for (const Var& v : inner.list) {
    ranges[v] = simplifier.bounds(Expr(v));
    if (!ranges[v].bounded() && uses_var(index, v)) return std::nullopt;
  }
  const std::optional<DimRegion> region = region_of(index, ranges, simplifier);
  if (!region) return std::nullopt;
  return Side{simplifier.affine(region->min), 0, region->extent - 1};
}

std::optional<Side> side_of(const Expr& index, const InnerVars& inner, Simplifier& simplifier) {
  const Affine form = simplifier.affine(index);
  if (form.overflow) return std::nullopt;
  Side out;
  Affine moving = Affine::of(form.constant);
  bool mixed = false;
  for (const Affine::Term& t : form.terms) {
    const bool moves = uses_any(t.atom, inner.all);
    (moves ? moving : out.base).add(t.atom, t.coefficient);
    mixed = mixed || (moves && uses_others(t.atom, inner.all));
  }
  if (mixed) return side_of_region(index, inner, simplifier);
  const Interval range = simplifier.bounds(moving);
  if (!range.bounded()) return std::nullopt;
  out.low = *range.min;
  out.high = *range.max;
  return out;
}

// The smallest side that holds both; nothing when they do not differ by a constant.
std::optional<Side> join_sides(const std::optional<Side>& a, const std::optional<Side>& b) {
  if (!a || !b) return std::nullopt;
  const Affine shift = b->base - a->base;
  if (!shift.is_constant()) return std::nullopt;
  return Side{a->base, std::min(a->low, b->low + shift.constant),
              std::max(a->high, b->high + shift.constant)};
}

}  // namespace

BufferUse touched(const Buffer& buffer, const Stmt& body, Simplifier& simplifier) {
  const InnerVars inner(body);
  BufferUse use;
  for_each_access(body, [&](const Buffer& b, const std::vector<Expr>& indices) {
    if (!(b == buffer)) return;
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::optional<Side> side = side_of(indices[d], inner, simplifier);
      if (!use.any)
        use.sides.push_back(side);
      else
        use.sides[d] = join_sides(use.sides[d], side);
      if (uses_any(indices[d], inner.vectorised)) use.vector_dims.push_back(static_cast<int>(d));
    }
    use.any = true;
  });
  return use;
}

}  // namespace tenon
