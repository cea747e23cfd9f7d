#include "schedule/dependence.h"

#include <algorithm>
#include <cstdlib>

#include "schedule/bounds_under_guards.h"
#include "schedule/plain_writes.h"

namespace tenon {
namespace {

/// One place where a stage touches a buffer; indices over the loops.
struct Access {
  Buffer buffer;
  bool write = false;
  std::vector<Expr> at;
};

/// Everything the dependence test needs to know of a stage under the loop.
struct Party {
  const Stage* stage = nullptr;
  std::vector<const For*> inside;  // loops of the stage inside the loop under test
  std::vector<Access> accesses;
};

/// The accesses of buffers that some stage under the loop writes: no others can be in conflict.
std::vector<Access> accesses_of(const Stage& stage, const std::vector<Buffer>& written) {
  VarMap bindings;
  for (const AxisBinding& b : stage.axes) bindings.emplace(b.axis.var, b.value);
  std::vector<Access> out;
  auto bound = [&](std::vector<Expr> at) {
    for (Expr& e : at) e = substitute(e, bindings);
    return at;
  };
  for (const Buffer& b : stage.outputs) out.push_back({b, true, bound(stage.indices)});
  auto look = [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (l && std::find(written.begin(), written.end(), l->buffer) != written.end())
      out.push_back({l->buffer, false, bound(l->indices)});
    return true;
  };
  for (const Expr& e : stage.indices) walk(e, look);
  for (const Expr& e : stage.values) walk(e, look);
  for (const Expr& e : stage.init) walk(e, look);
  return out;
}

/// Two accesses at iterations x and x' of a loop, and the loops inside it: can their elements be
/// the same? Side A keeps the loop variables, side B has a twin for each. Equal elements give
/// equations A = B; the solver derives further equalities from them, and when x = x' follows (or
/// nothing solves an equation) there is no conflict.
class ConflictTest {
 public:
  ConflictTest(const Var& x, Simplifier& math, Guards guards_a, Guards guards_b, VarMap twin)
      : x_(x),
        math_(math),
        guards_a_(std::move(guards_a)),
        guards_b_(std::move(guards_b)),
        twin_(std::move(twin)) {}

  /// Only loops may occur: what a load or a let gives may differ between iterations without a twin
  /// saying so.
  void equation(const Expr& a, const Expr& b) {
    if (!over_loops(a) || !over_loops(b)) return;
    todo_.push_back({math_.affine(a), math_.affine(b)});
  }

  bool impossible() {
    for (bool progress = true; progress && !proved_;) {
      progress = false;
      for (size_t n = 0; n < todo_.size() && !proved_; ++n) progress = solve(n) || progress;
      if (!proved_) progress = join_quotients() || progress;
    }
    return proved_;
  }

 private:
  struct Equation {
    Affine a, b;
  };

  bool over_loops(const Expr& e) const {
    bool only_loops = true;
    walk(e, [&](const Expr& part) {
      const VarRef* ref = part.as<VarRef>();
      only_loops = only_loops && !part.as<Load>() &&
                   (!ref || ref->var.is_symbol() || math_.ranges().count(ref->var));
      return only_loops;
    });
    return only_loops;
  }

  /// Cancels what stands on both sides, then tries to split one twin pair off. True when something
  /// new was learnt.
  bool solve(size_t n) {
    cancel(todo_[n]);
    const Equation eq = todo_[n];
    const Interval gap = bounds(eq.a, math_, guards_a_) - bounds(eq.b, math_, guards_b_);
    if ((gap.min && *gap.min > 0) || (gap.max && *gap.max < 0)) return proved_ = true;
    for (const Affine::Term& t : eq.a.terms) {
      const Expr other = substitute(t.atom, twin_);
      if (same_atom(other, t.atom) || eq.b.coefficient(other) != t.coefficient) continue;
      const Affine rest_a = Affine(eq.a).add(t.atom, -t.coefficient);
      const Affine rest_b = Affine(eq.b).add(other, -t.coefficient);
      const Interval rest = bounds(rest_a, math_, guards_a_) - bounds(rest_b, math_, guards_b_);
      const int64_t width = std::abs(t.coefficient);
      if (!rest.within(1 - width, width - 1)) continue;
      todo_[n] = {rest_a, rest_b};
      learn(t.atom);
      return true;
    }
    return false;
  }

  /// Terms with equal atoms and coefficients say nothing about the difference.
  static void cancel(Equation& eq) {
    const std::vector<Affine::Term> terms = eq.a.terms;
    for (const Affine::Term& t : terms)
      if (eq.b.coefficient(t.atom) == t.coefficient) {
        eq.a.add(t.atom, -t.coefficient);
        eq.b.add(t.atom, -t.coefficient);
      }
    eq.b.add(-eq.a.constant);
    eq.a.constant = 0;
  }

  /// The atom equals its twin: a variable is then one variable on both sides.
  void learn(const Expr& atom) {
    const VarRef* ref = atom.as<VarRef>();
    if (!ref) {
      known_.push_back(atom);
      return;
    }
    if (ref->var.same_as(x_)) {
      proved_ = true;
      return;
    }
    VarMap same;
    same.emplace(twin_.at(ref->var).as<VarRef>()->var, ref->var);
    twin_.erase(ref->var);
    for (Equation& eq : todo_) eq.b = math_.affine(substitute(to_expr(eq.b), same));
    for (Affine& g : guards_b_) g = math_.affine(substitute(to_expr(g), same));
    for (Expr& e : known_) e = substitute(e, same);
  }

  /// Do a and b differ by a multiple of n? (The remainder's operand is reduced modulo n.)
  bool congruent(const Expr& a, const Expr& b, const Expr& n) {
    const std::optional<int64_t> divisor = as_int(n);
    const Affine apart = math_.affine(a) - math_.affine(b);
    if (!divisor || *divisor < 1 || apart.overflow) return structural_equal(a, b);
    return apart.constant % *divisor == 0 &&
           std::all_of(apart.terms.begin(), apart.terms.end(),
                       [&](const Affine::Term& t) { return t.coefficient % *divisor == 0; });
  }

  /// e//n and e%n equal on both sides: so is e.
  bool join_quotients() {
    for (const Expr& q : known_)
      for (const Expr& m : known_) {
        const Binary *div = q.as<Binary>(), *mod = m.as<Binary>();
        if (!div || !mod || div->op != BinaryOp::floor_div || mod->op != BinaryOp::floor_mod)
          continue;
        if (!structural_equal(div->b, mod->b) || !congruent(div->a, mod->a, div->b)) continue;
        const Expr whole = div->a, quotient = q, rest = m;
        std::erase_if(known_,
                      [&](const Expr& e) { return e.same_as(quotient) || e.same_as(rest); });
        todo_.push_back({math_.affine(whole), math_.affine(substitute(whole, twin_))});
        return true;
      }
    return false;
  }

  Var x_;
  Simplifier& math_;
  Guards guards_a_, guards_b_;
  VarMap twin_;
  std::vector<Equation> todo_;
  std::vector<Expr> known_;
  bool proved_ = false;
};

/// Loops, ranges and twins shared by all tests under one loop.
class LoopTest {
 public:
  LoopTest(const StagePath& path, size_t at) : loop_(*path.loops[at]) {
    std::vector<const For*> outside(path.loops.begin(),
                                    path.loops.begin() + static_cast<std::ptrdiff_t>(at + 1));
    VarRanges ranges = loop_ranges(outside);
    private_ = allocated(loop_.body);
    paths_ = stage_paths(loop_.body);
    std::vector<Buffer> written;
    for (const StagePath& p : paths_)
      written.insert(written.end(), p.stage->outputs.begin(), p.stage->outputs.end());
    for (const StagePath& p : paths_) {
      for (const auto& [var, range] : loop_ranges(p.loops)) ranges[var] = range;
      parties_.push_back({p.stage, p.loops, accesses_of(*p.stage, written)});
    }
    math_ = Simplifier(std::move(ranges));
  }

  std::optional<std::string> conflict(Accumulation accumulation, const Buffer& only) {
    if (is_const(loop_.extent, 0) || is_const(loop_.extent, 1)) return std::nullopt;
    for (const Party& p : parties_)
      for (const Access& write : p.accesses) {
        if (!write.write || is_private(write.buffer) || (only.defined() && !(write.buffer == only)))
          continue;
        for (const Party& q : parties_)
          for (const Access& other : q.accesses) {
            if (!(other.buffer == write.buffer)) continue;
            if (accumulation == Accumulation::allowed && accumulates(p, q)) continue;
            if (&other == &write && tells_apart(p, write)) continue;
            if (!separate(p, write, q, other)) return describe(p, q, other);
          }
      }
    return std::nullopt;
  }

 private:
  bool is_private(const Buffer& b) const {
    return std::find(private_.begin(), private_.end(), b) != private_.end();
  }

  bool accumulates(const Party& p, const Party& q) const {
    return p.stage == q.stage && binds_reduce(*p.stage, loop_.var);
  }

  /// Whether two iterations of the loop write different elements, whatever the loops inside do: in
  /// some dimension each of their coefficients is more than those after it together reach, as in
  /// i.o*6 + i.i, so that equal indices have equal loops.
  bool tells_apart(const Party& p, const Access& a) {
    const auto varies = [&](const Var& v) {
      return v.same_as(loop_.var) || std::any_of(p.inside.begin(), p.inside.end(),
                                                 [&](const For* l) { return l->var.same_as(v); });
    };
    return std::any_of(a.at.begin(), a.at.end(), [&](const Expr& e) {
      const Affine index = math_.affine(e);
      bool speaks_of_loop = false;
      std::vector<std::pair<int64_t, int64_t>> digits;  // coefficient, greatest value
      for (const Affine::Term& t : index.terms) {
        const VarRef* ref = t.atom.as<VarRef>();
        const auto range = ref ? math_.ranges().find(ref->var) : math_.ranges().end();
        if (range == math_.ranges().end() || !range->second.bounded()) return false;
        if (!varies(ref->var)) continue;
        speaks_of_loop = speaks_of_loop || ref->var.same_as(loop_.var);
        digits.emplace_back(std::abs(t.coefficient), *range->second.max);
      }
      if (index.overflow || !speaks_of_loop) return false;
      std::sort(digits.begin(), digits.end());
      int64_t reached = 0;
      for (const auto& [coefficient, most] : digits) {
        if (coefficient <= reached) return false;
        reached += coefficient * most;
      }
      return true;
    });
  }

  /// A second variable for the loop and each loop inside it: their values in another iteration.
  void make_twins() {
    if (!twins_.empty()) return;
    const auto add = [&](const For& loop) {
      if (twins_.count(loop.var)) return;
      const Var twin(loop.var.name() + "'");
      twins_.emplace(loop.var, twin);
      math_.set_range(twin, Interval(math_.ranges().at(loop.var)));
    };
    add(loop_);
    for (const StagePath& p : paths_)
      for (const For* l : p.loops) add(*l);
  }

  bool separate(const Party& p, const Access& a, const Party& q, const Access& b) {
    make_twins();
    const Guards guards_a = affine_guards({p.stage->spatial_guard, p.stage->reduce_guard}, math_);
    std::vector<Expr> primed;
    for (const Expr& g : {q.stage->spatial_guard, q.stage->reduce_guard})
      if (g.defined()) primed.push_back(substitute(g, twins_));
    ConflictTest test(loop_.var, math_, guards_a, affine_guards(primed, math_), twins_);
    for (size_t d = 0; d < a.at.size() && d < b.at.size(); ++d)
      test.equation(a.at[d], substitute(b.at[d], twins_));
    return test.impossible();
  }

  std::string describe(const Party& p, const Party& q, const Access& other) const {
    const std::string& buffer = other.buffer->name;
    if (other.write && p.stage == q.stage)
      return fmt::format(
          "stage \"{}\" may write the same element of {} in two iterations of \"{}\"",
          p.stage->name, buffer, loop_.var.name());
    return fmt::format(
        "stage \"{}\" may {} an element of {} that stage \"{}\" writes in another iteration of "
        "\"{}\"",
        q.stage->name, other.write ? "write" : "read", buffer, p.stage->name, loop_.var.name());
  }

  const For& loop_;
  Simplifier math_;
  VarMap twins_;
  std::vector<Buffer> private_;
  std::vector<StagePath> paths_;
  std::vector<Party> parties_;
};

/// One stage alone is under the loop, and the loop runs its reduction: iterations meet in nothing
/// but its sum.
bool only_accumulates(const StagePath& path, size_t at) {
  const For& loop = *path.loops[at];
  return binds_reduce(*path.stage, loop.var) && stage_paths(loop.body).size() == 1;
}

}  // namespace

std::optional<std::string> conflict_between_iterations(const StagePath& path, size_t at,
                                                       Accumulation accumulation) {
  if (writes_lie_apart(path, at, at, accumulation)) return std::nullopt;
  if (accumulation == Accumulation::allowed && only_accumulates(path, at)) return std::nullopt;
  return LoopTest(path, at).conflict(accumulation, {});
}

std::optional<NestConflict> conflict_in_nest(const StagePath& path, size_t first, size_t last,
                                             Accumulation accumulation) {
  if (writes_lie_apart(path, first, last, accumulation)) return std::nullopt;
  for (size_t n = first; n <= last; ++n)
    if (auto why = conflict_between_iterations(path, n, accumulation))
      return NestConflict{n, *std::move(why)};
  return std::nullopt;
}

std::optional<std::string> conflict_on_buffer(const StagePath& path, size_t at,
                                              const Buffer& buffer) {
  return LoopTest(path, at).conflict(Accumulation::conflicts, buffer);
}

}  // namespace tenon
