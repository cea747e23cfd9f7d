#include "schedule/region.h"

#include <algorithm>

namespace tenon {
namespace {

bool uses_any(const Expr& e, const std::vector<const For*>& loops) {
  return std::any_of(loops.begin(), loops.end(), [&](const For* l) { return uses_var(e, l->var); });
}

/// The terms of a form with and without the loops inside.
struct SplitForm {
  Affine outer, inner;
};

SplitForm split_form(const Affine& form, const std::vector<const For*>& inside) {
  SplitForm out;
  for (const Affine::Term& t : form.terms)
    (uses_any(t.atom, inside) ? out.inner : out.outer).add(t.atom, t.coefficient);
  out.outer.add(form.constant);
  return out;
}

/// Values of a term at fixed outer loops: min (over the outer loops) and how far above it the term
/// can be.
struct Span {
  Affine min;
  int64_t width = 0;
};

/// Guards help where inner loops stand in sums alone; the rest is arith's.
std::optional<Span> span_of(const Expr& index, const std::vector<const For*>& inside,
                            Simplifier& math, const Guards& guards) {
  const SplitForm split = split_form(math.affine(index), inside);
  bool sums = !split.outer.overflow && !split.inner.overflow;
  for (const Affine::Term& t : split.inner.terms) sums = sums && t.atom.as<VarRef>();
  if (sums) {
    const Interval inner = bounds(split.inner, math, guards);
    if (!inner.bounded()) return std::nullopt;
    return Span{Affine(split.outer).add(*inner.min), *inner.max - *inner.min};
  }
  const std::optional<DimRegion> region = region_of(index, loop_ranges(inside), math);
  if (!region) return std::nullopt;
  return Span{math.affine(region->min), region->extent - 1};
}

}  // namespace

std::vector<Expr> sides(const LoopBox& box) {
  std::vector<Expr> out;
  for (const BoxDim& dim : box.dims) out.push_back(dim.extent);
  return out;
}

Simplifier math_for(const StagePath& path) { return Simplifier(loop_ranges(path.loops)); }

std::vector<Expr> outer_conditions(const Expr& guard, const StagePath& path, size_t first_inside,
                                   Simplifier& math) {
  std::vector<Expr> out;
  for (const Expr& c : conjuncts(guard)) {
    const Expr simple = math.simplify(c);  // a loop of one iteration is gone
    if (!is_true(simple) && !uses_any(simple, loops_from(path, first_inside)))
      out.push_back(simple);
  }
  return out;
}

std::vector<Expr> over_loops(const Stage& stage, std::vector<Expr> indices) {
  VarMap bindings;
  for (const AxisBinding& b : stage.axes) bindings.emplace(b.axis.var, b.value);
  for (Expr& e : indices) e = substitute(e, bindings);
  return indices;
}

std::vector<std::vector<Expr>> loads_of(const Stage& stage, const Buffer& buffer, bool with_init) {
  std::vector<std::vector<Expr>> out;
  auto look = [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (l && l->buffer == buffer) out.push_back(over_loops(stage, l->indices));
    return true;
  };
  for (const Expr& e : stage.indices) walk(e, look);
  for (const Expr& e : stage.values) walk(e, look);
  if (with_init)
    for (const Expr& e : stage.init) walk(e, look);
  return out;
}

void BoxBuilder::take_whole(size_t d) { dims_[d] = BoxDim{Affine::of(0), shape_[d], true}; }

void BoxBuilder::join(size_t d, const Affine& min, int64_t extent) {
  std::optional<BoxDim>& dim = dims_[d];
  if (!dim) {
    dim = BoxDim{min, int_imm(extent), false};
    return;
  }
  if (dim->whole) return;
  const Affine apart = min - dim->min;
  if (!apart.is_constant()) return take_whole(d);
  const int64_t low = std::min<int64_t>(apart.constant, 0);
  const int64_t high = std::max(*as_int(dim->extent), apart.constant + extent);
  dim->min.add(low);
  dim->extent = int_imm(high - low);
}

void BoxBuilder::add_index(size_t d, const Expr& index, const StagePath& path, size_t first_inside,
                           Simplifier& math, const Guards& guards) {
  const std::vector<const For*> inside = loops_from(path, first_inside);
  bool plain = true;  // a loaded index or a let says nothing that holds for all its points
  walk(index, [&](const Expr& e) {
    const VarRef* ref = e.as<VarRef>();
    plain =
        plain && !e.as<Load>() && (!ref || ref->var.is_symbol() || math.ranges().count(ref->var));
    return plain;
  });
  const std::optional<Span> span = plain ? span_of(index, inside, math, guards) : std::nullopt;
  if (!span || span->min.overflow) return take_whole(d);
  join(d, span->min, span->width + 1);
}

void BoxBuilder::add(const StagePath& path, size_t first_inside,
                     const std::vector<std::vector<Expr>>& accesses) {
  Simplifier math = math_for(path);
  const Guards guards = affine_guards({path.stage->spatial_guard, path.stage->reduce_guard}, math);
  for (const std::vector<Expr>& indices : accesses)
    for (size_t d = 0; d < indices.size(); ++d)
      add_index(d, indices[d], path, first_inside, math, guards);
}

LoopBox BoxBuilder::finish() const {
  LoopBox box;
  for (size_t d = 0; d < dims_.size(); ++d) {
    BoxDim dim = dims_[d].value_or(BoxDim{Affine::of(0), shape_[d], true});
    const std::optional<int64_t> size = as_int(shape_[d]);
    const int64_t most = size ? *size : tenon::bounds(shape_[d]).max.value_or(INT64_MAX);
    if (!dim.whole && *as_int(dim.extent) >= most) dim = BoxDim{Affine::of(0), shape_[d], true};
    if (!dim.whole && dim.min.is_constant() && size) {
      const int64_t low = std::clamp<int64_t>(dim.min.constant, 0, *size);
      const int64_t high = std::clamp<int64_t>(dim.min.constant + *as_int(dim.extent), low, *size);
      dim.min = Affine::of(low);
      dim.extent = int_imm(high - low);
    }
    box.dims.push_back(std::move(dim));
  }
  return box;
}

namespace {

/// A conjunct of a guard as forms <= 0, and whether the analysis has accounted for it.
struct GuardUse {
  Expr condition;
  Guards forms;
  bool used = false;
};

bool same_terms(const Affine& a, const Affine& b) {
  return a.terms.size() == b.terms.size() &&
         std::all_of(a.terms.begin(), a.terms.end(),
                     [&](const Affine::Term& t) { return b.coefficient(t.atom) == t.coefficient; });
}

/// form < size, or form >= 0.
bool keeps_in_domain(const GuardUse& g, const Affine& form, const Affine& size) {
  if (g.forms.size() != 1) return false;
  const Affine &f = g.forms[0], below = form - size;
  return (same_terms(f, below) && f.constant == below.constant + 1) ||
         (same_terms(f * -1, form) && -f.constant == form.constant);
}

/// Values 0, 1, ... that the inner part of a dimension takes, each: terms are sorted by
/// coefficient, and every term starts where the ones before it end (x.o*f + x.i), guards cut off at
/// the top.
class Radix {
 public:
  Radix(const StagePath& path, size_t first_inside, std::vector<GuardUse>& guards)
      : path_(path), inside_(loops_from(path, first_inside)), guards_(guards) {}

  int64_t extent(size_t dim, const Affine& inner) {
    std::vector<Affine::Term> terms = inner.terms;
    std::sort(terms.begin(), terms.end(), [](const Affine::Term& a, const Affine::Term& b) {
      return a.coefficient < b.coefficient;
    });
    int64_t covered = 1;
    Affine sum;
    for (const Affine::Term& t : terms) {
      const int64_t n = loop_extent(dim, t.atom);
      if (t.coefficient <= 0 || t.coefficient > covered) fail(dim);
      covered += t.coefficient * (n - 1);
      sum.add(t.atom, t.coefficient);
      for (GuardUse& g : guards_)
        if (g.forms.size() == 1 && same_terms(g.forms[0], sum)) {
          covered = std::min(covered, 1 - g.forms[0].constant);
          g.used = true;
        }
    }
    return covered;
  }

  /// The dimension has a symbolic extent and its loop runs over all of it.
  bool takes_whole(const SplitForm& form, const Expr& size) {
    if (!form.outer.is_constant() || form.outer.constant != 0 || form.inner.terms.size() != 1)
      return false;
    const Affine::Term& term = form.inner.terms[0];
    for (const For* l : inside_) {
      if (!runs(*l, term.atom) || extent_of(*l)) continue;
      if (term.coefficient != 1 || !structural_equal(l->extent, size) || is_taken(l)) return false;
      taken_.push_back(l);
      return true;
    }
    return false;
  }

  void fail(size_t dim) const {
    refuse(Rule::exact_box,
           fmt::format("it cannot be proved that stage \"{}\" writes exactly a box of {} there: "
                       "dimension {} is {}",
                       path_.stage->name, path_.stage->outputs[0]->name, dim,
                       print(over_loops(*path_.stage, path_.stage->indices)[dim])),
           "do it before the loops inside are fused or split with a rest, or at another loop");
  }

 private:
  int64_t loop_extent(size_t dim, const Expr& atom) {
    for (const For* l : inside_) {
      if (!runs(*l, atom)) continue;
      if (!extent_of(*l))
        refuse(Rule::exact_box_symbolic,
               fmt::format("loop \"{}\" has the symbolic extent {}; what stage \"{}\" writes of "
                           "dimension {} of {} inside it is not known to be a box",
                           l->var.name(), print(l->extent), path_.stage->name, dim,
                           path_.stage->outputs[0]->name),
               "do it at a loop outside all loops of that dimension, or inside the symbolic one",
               full_name(path_,
                         static_cast<size_t>(std::find(path_.loops.begin(), path_.loops.end(), l) -
                                             path_.loops.begin())));
      if (extent_of(*l).value_or(0) <= 0) continue;
      if (is_taken(l)) fail(dim);
      taken_.push_back(l);
      return *extent_of(*l);
    }
    fail(dim);
    return 1;
  }

  static bool runs(const For& loop, const Expr& atom) {
    const VarRef* ref = atom.as<VarRef>();
    return ref && loop.var.same_as(ref->var);
  }
  bool is_taken(const For* l) const {
    return std::find(taken_.begin(), taken_.end(), l) != taken_.end();
  }

  const StagePath& path_;
  std::vector<const For*> inside_;
  std::vector<GuardUse>& guards_;
  std::vector<const For*> taken_;  // a loop in two dimensions would write a diagonal
};

/// A fused loop of no iterations leaves no trace in the indices. A reduction over nothing still
/// writes its init.
void check_runs(const StagePath& path, size_t first_inside) {
  for (size_t n = first_inside; n < path.loops.size(); ++n) {
    const For& loop = *path.loops[n];
    if (loop.kind == AxisKind::reduce || extent_of(loop) != 0) continue;
    refuse(Rule::exact_box,
           fmt::format("loop \"{}\" never runs, so stage \"{}\" writes nothing of {} there",
                       loop.var.name(), path.stage->name, path.stage->outputs[0]->name),
           "choose a loop outside all loops of the stage, or leave it where it is",
           full_name(path, n));
  }
}

}  // namespace

LoopBox exact_box(const StagePath& path, size_t first_inside) {
  Simplifier math = math_for(path);
  const Stage& stage = *path.stage;
  const std::vector<const For*> inside = loops_from(path, first_inside);
  std::vector<GuardUse> guards;
  for (const Expr& c : conjuncts(stage.spatial_guard))
    guards.push_back({c, affine_guards({c}, math), math.prove(c)});

  check_runs(path, first_inside);
  LoopBox box;
  Radix radix(path, first_inside, guards);
  const std::vector<Expr> at = over_loops(stage, stage.indices);
  for (size_t d = 0; d < at.size(); ++d) {
    const Affine form = math.affine(at[d]);
    const SplitForm split = split_form(form, inside);
    const Expr& size = stage.outputs[0]->shape[d];
    if (form.overflow || is_scatter(stage)) radix.fail(d);
    if (radix.takes_whole(split, size)) {
      box.dims.push_back({Affine::of(0), size, true});
      continue;
    }
    box.dims.push_back({split.outer, int_imm(radix.extent(d, split.inner)), false});
    for (GuardUse& g : guards) g.used = g.used || keeps_in_domain(g, form, math.affine(size));
  }
  for (const GuardUse& g : guards) {
    if (g.used) continue;
    const Expr simple = math.simplify(g.condition);
    if (uses_any(simple, inside))
      refuse(Rule::exact_box_guard,
             fmt::format("it cannot be proved that stage \"{}\" writes exactly a box there: it "
                         "runs only where {}",
                         stage.name, print(g.condition)),
             "do it before the loops inside are split with a rest, or at another loop");
    box.conditions.push_back(simple);
  }
  return box;
}

BoxAccess access_box(const LoopBox& box, const std::vector<Expr>& loops,
                     const std::vector<Expr>& shape, Simplifier& math) {
  BoxAccess out;
  for (size_t d = 0; d < box.dims.size(); ++d) {
    const BoxDim& dim = box.dims[d];
    out.values.push_back(to_expr(Affine(dim.min).add(loops[d], 1)));
    if (dim.whole) continue;
    const Expr& value = out.values.back();
    const Interval low = math.bounds(dim.min);
    const std::optional<int64_t> size = as_int(shape[d]), extent = as_int(dim.extent);
    if (!low.min || *low.min < 0) out.guard = both(out.guard, value >= int_imm(0));
    if (!low.max || !size || *low.max + *extent > *size)
      out.guard = both(out.guard, value < shape[d]);
  }
  for (const Expr& c : box.conditions) out.guard = both(out.guard, c);
  return out;
}

}  // namespace tenon
