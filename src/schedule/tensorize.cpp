#include "schedule/tensorize.h"

#include <tenon/schedule/tensor_primitives.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <bit>
#include <set>

#include "arith/formula_match.h"
#include "arith/layout.h"
#include "schedule/legality.h"
#include "schedule/mark.h"
#include "schedule/place.h"
#include "schedule/region.h"

namespace tenon {
namespace {

/// A loop, what is inside it and what it is held against.
struct Nest {
  const StagePath& path;
  size_t at;
  const Intrinsic& intrinsic;
  IntrinsicParts parts;
  const Target& target;

  const For& lanes() const { return *path.loops[at]; }
  const For* group() const { return at + 1 < path.loops.size() ? path.loops[at + 1] : nullptr; }
  std::string mark() const { return full_name(path, at); }
  /// "loop "j.i" of stage "C" is not dot4_u8i8_i32: "
  std::string lead() const {
    return fmt::format("loop \"{}\" of stage \"{}\" is not {}: ", lanes().var.name(),
                       path.stage->name, intrinsic.name);
  }
};

/// Directly inside the loop: the loop that the formula combines over, if any, and the stage.
void check_loops(const Nest& nest) {
  const Stage& stage = *nest.path.stage;
  const size_t wanted = nest.parts.stage->combiner ? 1 : 0,
               got = nest.path.loops.size() - nest.at - 1;
  const Stmt& inner = wanted && got ? nest.group()->body : nest.lanes().body;
  const bool alone = got == wanted && inner.as<Stage>() == &stage &&
                     (!wanted || nest.lanes().body.as<For>() == nest.group());
  if (!alone)
    refuse(
        Rule::tensorize_nest,
        fmt::format(
            "{}{} and the stage must be all that is inside it, but there {}", nest.lead(),
            wanted ? "one loop" : "no loop",
            got == wanted ? std::string("is more between them") : fmt::format("are {} loops", got)),
        "split and reorder so that the loops of the formula are the innermost, the lanes outside",
        nest.mark());
  if (!wanted) return;
  const auto extent = extent_of(*nest.group());
  if (extent != nest.parts.group || !binds_reduce(stage, nest.group()->var))
    refuse(Rule::tensorize_group,
           fmt::format("{}the formula combines {} elements, and loop \"{}\" {}", nest.lead(),
                       nest.parts.group, nest.group()->var.name(),
                       binds_reduce(stage, nest.group()->var)
                           ? fmt::format("has extent {}", print(nest.group()->extent))
                           : "is no reduction loop"),
           fmt::format("split the reduction by {} and reorder", nest.parts.group),
           full_name(nest.path, nest.at + 1));
}

FormulaMatch check_value(const Nest& nest) {
  const Stage& stage = *nest.path.stage;
  const Stage& formula = *nest.parts.stage;
  FormulaMatch out;
  if (stage.outputs.size() != 1) {
    out.difference = fmt::format("the stage has {} outputs", stage.outputs.size());
  } else if (!stage.combiner != !formula.combiner ||
             (stage.combiner && combiner_op(*stage.combiner) != combiner_op(*formula.combiner))) {
    const auto word = [](const Stage& s) { return s.combiner ? s.combiner->name : "no reduction"; };
    out.difference = fmt::format("the formula is {} and the stage {}", word(formula), word(stage));
  } else if (stage.outputs[0]->dtype != nest.parts.output->dtype) {
    out.difference = fmt::format("the formula gives {} and the stage {}",
                                 name(nest.parts.output->dtype), name(stage.outputs[0]->dtype));
  } else {
    out = match_formula(nest.parts, stage.values[0]);
  }
  if (!out.difference.empty())
    refuse(Rule::tensorize_formula,
           fmt::format("{}it computes another formula: {}", nest.lead(), out.difference),
           "declare an intrinsic of this formula, or vectorize the loop", nest.mark());
  return out;
}

/// Lanes of one vector here, as lowering will choose them at most.
int64_t lanes_of(const Nest& nest) {
  int64_t lanes = nest.target.lanes(nest.parts.output->dtype), best = 0;
  for (const IntrinsicImplementation& code : nest.intrinsic.implementations) {
    const bool runs = std::all_of(code.features.begin(), code.features.end(),
                                  [&](const auto& f) { return nest.target.has_feature(f); });
    if (runs && code.lanes <= lanes) best = std::max<int64_t>(best, code.lanes);
  }
  if (best > 0) lanes = best;
  const auto extent = static_cast<uint64_t>(std::max<int64_t>(*extent_of(nest.lanes()), 1));
  return std::min(lanes, static_cast<int64_t>(std::bit_ceil(extent)));
}

/// The number of the element in memory, over the loops, of a vector whose lane is `lane`. A buffer
/// allocated inside the program holds the box of one entry of its Allocate, so what the loops
/// outside add to an index is left out.
class Addresses {
 public:
  explicit Addresses(const Nest& nest, const Program& program)
      : nest_(nest), program_(program), math_(math_for(nest.path)), lane_("lane") {
    // At least two, so that a loop of one iteration has a stride as well.
    const int64_t lanes = std::max<int64_t>(lanes_of(nest), 2), extent = *extent_of(nest.lanes());
    const Var chunk("chunk");
    math_.set_range(lane_, Interval::extent(lanes));
    math_.set_range(chunk, Interval::extent((extent + lanes - 1) / lanes));
    chunked_[nest.lanes().var] = Expr(chunk) * int_imm(lanes) + Expr(lane_);
  }

  std::optional<ElementForm> form(const Buffer& buffer, const std::vector<Expr>& indices) {
    const std::set<const VarNode*> outside = loops_outside(buffer);
    std::vector<Expr> at;
    for (Expr& e : over_loops(*nest_.path.stage, indices)) {
      Affine form = math_.affine(substitute(e, chunked_));
      Affine inside = Affine::of(form.constant);
      for (const Affine::Term& t : form.terms) {
        const VarRef* v = t.atom.as<VarRef>();
        if (!v || !outside.count(v->var.get())) inside.add(t.atom, t.coefficient);
      }
      if (form.overflow) return std::nullopt;
      if (!outside.empty()) inside.add(-math_.bounds(inside).min.value_or(0));
      at.push_back(math_.simplify(to_expr(inside)));
    }
    const Var group = nest_.group() ? nest_.group()->var : Var();
    if (buffer->scope == Scope::reg) return in_registers(at, group);
    return element_form(math_.simplify(flat_index(*buffer, at)), lane_, group, math_);
  }

 private:
  /// Lowering puts the dimension that lanes run along last, whatever the order of the others.
  std::optional<ElementForm> in_registers(const std::vector<Expr>& at, const Var& group) {
    ElementForm out;
    for (const Expr& e : at) {
      const auto form = element_form(e, lane_, group, math_);
      const bool second = form && form->lane_stride != 0 && out.lane_stride != 0;
      if (!form || second || form->group_stride != 0) return std::nullopt;
      out.lane_stride += form->lane_stride;
    }
    return out;
  }

  std::set<const VarNode*> loops_outside(const Buffer& buffer) const {
    std::set<const VarNode*> out;
    for (const For* loop : loops_round_allocate(program_, buffer)) out.insert(loop->var.get());
    return out;
  }

  const Nest& nest_;
  const Program& program_;
  Simplifier math_;
  Var lane_;
  VarMap chunked_;
};

void check_memory(const Nest& nest, const Program& program, const FormulaMatch& match) {
  Addresses addresses(nest, program);
  const Stage& stage = *nest.path.stage;
  const auto out = addresses.form(stage.outputs[0], stage.indices);
  if (!out || out->lane_stride != 1 || out->group_stride != 0)
    refuse(Rule::tensorize_output,
           fmt::format("{}its iterations do not write neighbouring elements of {}", nest.lead(),
                       stage.outputs[0]->name),
           "tensorize a loop over the innermost dimension of the output", nest.mark());
  for (size_t k = 0; k < match.loads.size(); ++k) {
    const Load& n = *match.loads[k].as<Load>();
    const auto form = addresses.form(n.buffer, n.indices);
    if (form && operand_form(*form, nest.parts.group) != OperandForm::scattered) continue;
    const std::string& operand = nest.parts.inputs[k]->name;
    refuse(Rule::tensorize_operand,
           form ? fmt::format("{}operand {}, which is {}, moves by {} elements a lane and by {} in "
                              "loop \"{}\"; it must be {} and 1, or 0 and 1 (the same for all "
                              "lanes), or 0 and 0",
                              nest.lead(), operand, n.buffer->name, form->lane_stride,
                              form->group_stride,
                              nest.group() ? nest.group()->var.name() : nest.lanes().var.name(),
                              nest.parts.group)
                : fmt::format("{}operand {}, which is {}, is no straight line in memory over its "
                              "iterations",
                              nest.lead(), operand, n.buffer->name),
           fmt::format("cache_read {} with a layout whose last dimensions are the lanes and the {} "
                       "elements of each",
                       n.buffer->name, nest.parts.group),
           nest.mark());
  }
}

/// The loops of a product of tiles, by their place in the path.
struct TileLoops {
  std::optional<size_t> tiles;
  size_t rows = 0, lanes = 0, steps = 0, group = 0;
};

/// [tiles] rows lanes (spatial), then a sum of at least steps and elements of a lane.
std::optional<TileLoops> tile_loops(const Nest& nest) {
  const Stage& stage = *nest.path.stage;
  const auto& loops = nest.path.loops;
  size_t sums = nest.at;
  while (sums < loops.size() && !binds_reduce(stage, loops[sums]->var)) ++sums;
  const size_t spatial = sums - nest.at;
  bool alone = (spatial == 2 || spatial == 3) && loops.size() >= sums + 2 &&
               loops.back()->body.as<Stage>() == &stage;
  for (size_t n = nest.at; alone && n + 1 < loops.size(); ++n)
    alone = loops[n]->body.as<For>() == loops[n + 1];
  for (size_t n = sums; alone && n < loops.size(); ++n) alone = binds_reduce(stage, loops[n]->var);
  if (!alone) return std::nullopt;
  TileLoops out{{}, sums - 2, sums - 1, loops.size() - 2, loops.size() - 1};
  if (spatial == 3) out.tiles = nest.at;
  return out;
}

/// Whole tiles of each axis but the rows.
TileLoops check_tile_loops(const Nest& nest) {
  const Stage& stage = *nest.path.stage;
  const auto found = tile_loops(nest);
  if (!found)
    refuse(Rule::tensorize_nest,
           fmt::format("{}the loops over rows, lanes, steps and elements of a lane must be the "
                       "innermost, in that order, with nothing between them but more of the sum; "
                       "one loop over tiles of rows may be outside",
                       nest.lead()),
           "split the reduction by the elements of a lane, and reorder", nest.mark());
  const auto whole = [&](size_t at, int64_t size, int64_t most, const char* what) {
    const For& loop = *nest.path.loops[at];
    const auto extent = extent_of(loop);
    if (extent && *extent > 0 && *extent % size == 0 && *extent <= most) return;
    refuse(
        Rule::tensorize_group,
        fmt::format("{}loop \"{}\" of extent {} must run over the {}, in tiles of {}", nest.lead(),
                    loop.var.name(), print(loop.extent), what, size > 1 ? size : most),
        "pad_einsum to multiples of the tile, and split by them", full_name(nest.path, at));
  };
  constexpr int64_t kAny = INT64_MAX;
  whole(found->rows, 1, found->tiles ? nest.parts.rows : kAny, "rows");
  whole(found->lanes, nest.parts.lanes, kAny, "lanes");
  whole(found->steps, nest.parts.steps, kAny, "steps");
  whole(found->group, nest.parts.group, nest.parts.group, "elements of a lane");
  for (size_t n = found->steps; n-- > found->lanes + 1;) whole(n, 1, kAny, "rest of the sum");
  const auto whole_axis = [&](size_t n) {
    const auto extent = as_int(stage.axes[n].axis.extent);
    return extent && *extent % nest.parts.lanes == 0;
  };
  for (size_t n = 0; n < stage.indices.size(); ++n)
    if (stage.spatial_guard.defined() &&
        uses_var(stage.axes[n].value, nest.path.loops[found->lanes]->var) && !whole_axis(n))
      refuse(Rule::tensorize_group,
             fmt::format("{}axis \"{}\" of extent {} is no whole number of tiles", nest.lead(),
                         stage.axes[n].axis.var.name(), print(stage.axes[n].axis.extent)),
             "pad_einsum to multiples of the tile", nest.mark());
  if (stage.reduce_guard.defined())
    refuse(Rule::tensorize_group,
           fmt::format("{}its reduction is guarded by {}", nest.lead(), print(stage.reduce_guard)),
           "pad_einsum the reduction to whole steps", nest.mark());
  return *found;
}

/// How far an index moves in memory for one iteration of the loops inside a tile.
struct TileStrides {
  int64_t tiles = 0, rows = 0, lanes = 0, steps = 0, group = 0;
};

std::optional<TileStrides> tile_strides(const Nest& nest, const TileLoops& loops,
                                        const Buffer& buffer, const std::vector<Expr>& indices) {
  Simplifier math = math_for(nest.path);
  const std::vector<Expr> at = over_loops(*nest.path.stage, indices);
  const Affine form = math.affine(math.simplify(flat_index(*buffer, at)));
  TileStrides out;
  if (form.overflow) return std::nullopt;
  std::vector<std::pair<size_t, int64_t*>> all = {{loops.rows, &out.rows},
                                                  {loops.lanes, &out.lanes},
                                                  {loops.steps, &out.steps},
                                                  {loops.group, &out.group}};
  if (loops.tiles) all.push_back({*loops.tiles, &out.tiles});
  for (const Affine::Term& t : form.terms)
    for (const auto& [loop, stride] : all) {
      const Var& v = nest.path.loops[loop]->var;
      const VarRef* ref = t.atom.as<VarRef>();
      if (ref && ref->var.same_as(v))
        *stride = t.coefficient;
      else if (uses_var(t.atom, v))
        return std::nullopt;
    }
  return out;
}

void check_tile_memory(const Nest& nest, const TileLoops& loops, FormulaMatch match) {
  const Stage& stage = *nest.path.stage;
  const auto out = tile_strides(nest, loops, stage.outputs[0], stage.indices);
  const bool zero_start =
      stage.init.empty() || as_int(stage.init[0]) == 0 || as_float(stage.init[0]) == 0.0;
  const bool memory = stage.outputs[0]->scope != Scope::reg;
  if (!out || !memory || !zero_start || out->rows <= 0 || out->lanes != 1 || out->steps != 0 ||
      out->group != 0)
    refuse(Rule::tensorize_output,
           fmt::format("{}its lanes must write neighbouring elements of {} in memory, sums that "
                       "start at 0",
                       nest.lead(), stage.outputs[0]->name),
           "lanes over the innermost dimension of the output, no register scope", nest.mark());
  const auto strides = [&](const Expr& e) {
    const Load& n = *e.as<Load>();
    return tile_strides(nest, loops, n.buffer, n.indices);
  };
  const auto first = strides(match.loads[0]);
  if (first && first->lanes != 0 && match.loads[0].dtype() == match.loads[1].dtype())
    std::swap(match.loads[0], match.loads[1]);  // the product commutes
  const int64_t group = nest.parts.group;
  for (size_t k = 0; k < 2; ++k) {
    const Load& n = *match.loads[k].as<Load>();
    const auto s = strides(match.loads[k]);
    const bool fine = s && s->group == 1 &&
                      (k == 0 ? s->rows > 0 && s->lanes == 0 && s->steps == group
                              : s->rows == 0 && s->tiles == 0 && s->lanes == group && s->steps > 0);
    if (fine) continue;
    refuse(
        Rule::tensorize_operand,
        fmt::format("{}operand {}, which is {}, must have the {} elements of a lane next to each "
                    "other and then its {} in order",
                    nest.lead(), nest.parts.inputs[k]->name, n.buffer->name, group,
                    k == 0 ? "steps" : "lanes"),
        fmt::format("pack {} with a layout whose last dimensions are those", n.buffer->name),
        nest.mark());
  }
}

void check_nest(const Nest& nest, const Program& program) {
  if (nest.parts.is_tile()) {
    const TileLoops loops = check_tile_loops(nest);
    return check_tile_memory(nest, loops, check_value(nest));
  }
  check_loops(nest);
  check_memory(nest, program, check_value(nest));
}

}  // namespace

void check_tensorized(const Program& program, const std::vector<StagePath>& all,
                      const Target& target) {
  for (const StagePath& path : all)
    for (size_t n = 0; n < path.loops.size(); ++n)
      if (const auto& intrinsic = path.loops[n]->intrinsic)
        check_nest({path, n, *intrinsic, parts_of(*intrinsic), target}, program);
}

IntrinsicRef declare_intrinsic(std::string name, const Tensor& formula,
                               std::vector<IntrinsicImplementation> implementations) {
  Program program = make_program(name, {formula});
  return Intrinsic{std::move(name), std::move(program), std::move(implementations)};
}

/// for x in 0..n          ->   for x in 0..n  tensorize dot4
///   for r in 0..4: S(x, r)      for r in 0..4  unroll: S(x, r)
Program Tensorize::apply(const Program& program, const Target& target) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const For& l = *path.loops[at];
  check_unmarked(path, at, LoopMark::tensorize);
  if (!intrinsic.defined())
    refuse(Rule::tensorize_missing, "tensorize needs an intrinsic",
           "the name of one of intrinsics(), or a declaration");
  if (l.mark == LoopMark::tensorize && intrinsic == IntrinsicRef(l.intrinsic)) return program;
  if (!extent_of(l))
    refuse(Rule::tensorize_symbolic,
           fmt::format("loop \"{}\" has the symbolic extent {}; tensorize needs a constant", loop,
                       print(l.extent)),
           "split it by the number of lanes first", full_name(path, at));
  for (size_t n = 0; n < at; ++n)
    if (makes_lanes(path.loops[n]->mark))
      refuse(Rule::tensorize_nested,
             fmt::format("loop \"{}\" outside is vectorized already; a nest has one such loop",
                         path.loops[n]->var.name()),
             {}, full_name(path, at));
  const Nest nest{path, at, *intrinsic, parts_of(*intrinsic), target};
  const bool tile = nest.parts.is_tile();
  if (tile)
    check_tile_loops(nest);
  else
    check_loops(nest);
  if (!tile && nest.group()) check_unmarked(path, at + 1, LoopMark::unroll);
  check_iterations(path, at, "tensorize");
  check_nest(nest, program);

  Program out = with_mark(program, l.var, LoopMark::tensorize);
  out.body = replace_loop(out.body, l.var, [&](const For& marked) {
    For own = marked;
    own.intrinsic = intrinsic.get();
    return make_stmt(std::move(own));
  });
  return !tile && nest.group() ? with_mark(out, nest.group()->var, LoopMark::unroll) : out;
}

}  // namespace tenon
