#include "arith/ownership.h"

#include <tenon/ir/ops.h>

#include <algorithm>
#include <cstdlib>

namespace tenon {
namespace {

bool uses_one_of(const Expr& e, const std::vector<Var>& vars) {
  return std::any_of(vars.begin(), vars.end(), [&](const Var& v) { return uses_var(e, v); });
}

/// An index as: a part that the thread decides, a part equal on both sides, and the rest.
struct Parts {
  Affine thread, fixed, moving;

  Parts(const Affine& form, const std::vector<Var>& threads, const std::vector<Var>& fixed_vars) {
    for (const Affine::Term& t : form.terms) {
      const bool by_thread = uses_one_of(t.atom, threads);
      bool known = !by_thread;
      for (const Var& v : free_vars(t.atom))
        known = known && std::any_of(fixed_vars.begin(), fixed_vars.end(),
                                     [&](const Var& f) { return f.same_as(v); });
      walk(t.atom, [&](const Expr& part) {
        known = known && !part.as<Load>();
        return known;
      });
      (by_thread ? thread : known ? fixed : moving).add(t.atom, t.coefficient);
    }
    moving.add(form.constant);
  }
};

bool equal(const Affine& a, const Affine& b) { return (a - b).is_constant(); }

/// Atoms of sum(c * atom) whose values follow from the sum, known up to +-slack: digits of a number
/// in a mixed radix.
void find_known(const Affine& sum, int64_t slack, Simplifier& math, std::vector<Expr>& known) {
  std::vector<Affine::Term> terms = sum.terms;
  std::stable_sort(terms.begin(), terms.end(), [](const Affine::Term& x, const Affine::Term& y) {
    return std::abs(x.coefficient) < std::abs(y.coefficient);
  });
  size_t first = 0;
  int64_t reach = slack;  // what the smaller terms can make up for
  std::vector<Expr> found;
  for (; first < terms.size(); ++first) {
    const int64_t c = std::abs(terms[first].coefficient);
    if (c <= reach) return;
    const Interval range = math.bounds(terms[first].atom);
    if (!range.bounded() || *range.max - *range.min > (int64_t{1} << 40) / c) return;
    reach += c * (*range.max - *range.min);
    found.push_back(terms[first].atom);
  }
  known.insert(known.end(), found.begin(), found.end());
}

bool is_known(const std::vector<Expr>& known, const Expr& e) {
  return std::any_of(known.begin(), known.end(), [&](const Expr& k) { return same_atom(k, e); });
}

/// The variable itself, or its quotient and remainder by one number.
bool determines(const std::vector<Expr>& known, const Var& v) {
  if (is_known(known, v)) return true;
  for (const Expr& q : known) {
    const Binary* n = q.as<Binary>();
    if (!n || n->op != BinaryOp::floor_div || !same_atom(n->a, v)) continue;
    if (is_known(known, floor_mod(n->a, n->b))) return true;
  }
  return false;
}

}  // namespace

bool same_thread_only(const ThreadAccess& a, const ThreadAccess& b, const std::vector<Var>& threads,
                      const std::vector<Var>& fixed, Simplifier& math) {
  std::vector<Expr> known;
  for (size_t d = 0; d < a.index.size() && d < b.index.size(); ++d) {
    const Affine fa = math.affine(a.index[d]), fb = math.affine(b.index[d]);
    if (fa.overflow || fb.overflow) continue;
    const Parts x(fa, threads, fixed), y(fb, threads, fixed);
    if (!(x.thread - y.thread).is_constant() || !equal(x.fixed, y.fixed)) continue;
    // What moves in the same way on both sides is one more digit beside those of the thread.
    Affine digits = x.thread, rest_x = x.moving, rest_y = y.moving;
    for (const Affine::Term& t : x.moving.terms) {
      if (y.moving.coefficient(t.atom) != t.coefficient) continue;
      digits.add(t.atom, t.coefficient);
      rest_x.add(t.atom, -t.coefficient);
      rest_y.add(t.atom, -t.coefficient);
    }
    const Interval gap = math.bounds(rest_x) - math.bounds(rest_y);
    if (!gap.bounded()) continue;
    find_known(digits, std::max(std::abs(*gap.min), std::abs(*gap.max)), math, known);
  }
  return std::all_of(threads.begin(), threads.end(),
                     [&](const Var& v) { return determines(known, v); });
}

}  // namespace tenon
