#include "schedule/bounds_under_guards.h"

#include <algorithm>

namespace tenon {
namespace {

/// a - b <= 0 for a comparison that can be written so.
void add_guard(const Expr& condition, Simplifier& math, Guards& out) {
  const Binary* b = condition.as<Binary>();
  if (!b || b->a.type() != Type{i64, 1}) return;
  const Affine difference = math.affine(b->a) - math.affine(b->b);
  if (difference.overflow) return;
  switch (b->op) {
    case BinaryOp::lt:
      out.push_back(Affine(difference).add(1));
      break;
    case BinaryOp::le:
      out.push_back(difference);
      break;
    case BinaryOp::gt:
      out.push_back((difference * -1).add(1));
      break;
    case BinaryOp::ge:
      out.push_back(difference * -1);
      break;
    case BinaryOp::eq:
      out.push_back(difference);
      out.push_back(difference * -1);
      break;
    default:
      break;
  }
}

/// f with form = f * (terms of the guard) + rest, or 0.
int64_t common_factor(const Affine& form, const Affine& guard) {
  int64_t factor = 0;
  for (const Affine::Term& t : guard.terms) {
    const int64_t c = form.coefficient(t.atom);
    if (c == 0 || c % t.coefficient != 0) return 0;
    if (factor != 0 && c / t.coefficient != factor) return 0;
    factor = c / t.coefficient;
  }
  return factor;
}

Interval bounds_from(const Affine& form, Simplifier& math, const Guards& guards, size_t next) {
  Interval best = math.bounds(form);
  for (size_t n = next; n < guards.size(); ++n) {
    const int64_t factor = common_factor(form, guards[n]);
    if (factor == 0 || guards[n].overflow) continue;
    Affine group = guards[n];
    group.constant = 0;
    const Interval values =
        intersect(math.bounds(group), Interval{std::nullopt, -guards[n].constant});
    const Affine rest = form - group * factor;
    best =
        intersect(best, values * Interval::point(factor) + bounds_from(rest, math, guards, n + 1));
  }
  return best;
}

}  // namespace

VarRanges loop_ranges(const std::vector<const For*>& loops) {
  VarRanges out;
  for (const For* l : loops) {
    const std::optional<int64_t> n = extent_of(*l);
    out[l->var] = n ? Interval::extent(std::max<int64_t>(*n, 1)) : Interval{0, std::nullopt};
  }
  return out;
}

Guards affine_guards(const std::vector<Expr>& guards, Simplifier& math) {
  Guards out;
  for (const Expr& g : guards)
    for (const Expr& c : conjuncts(g)) add_guard(c, math, out);
  return out;
}

Interval bounds(const Affine& form, Simplifier& math, const Guards& guards) {
  return bounds_from(form, math, guards, 0);
}

std::vector<const For*> loops_from(const StagePath& path, size_t first) {
  return {path.loops.begin() + static_cast<std::ptrdiff_t>(first), path.loops.end()};
}

}  // namespace tenon
