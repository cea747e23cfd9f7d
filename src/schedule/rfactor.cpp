#include <tenon/schedule/restructure_primitives.h>

#include <algorithm>

#include "schedule/place.h"

namespace tenon {
namespace {

void check_combiner(const Stage& stage, const std::string& mark) {
  if (!stage.combiner)
    refuse(Rule::rfactor_map, fmt::format("stage \"{}\" is not a reduction", stage.name), {}, mark);
  if (!stage.combiner->commutative)
    refuse(Rule::rfactor_ordered,
           fmt::format("combiner \"{}\" of stage \"{}\" does not commute; its parts cannot be "
                       "combined apart",
                       stage.combiner->name, stage.name),
           {}, mark);
  if (!indexed_by_axes(stage))
    refuse(
        Rule::rfactor_indices,
        fmt::format("stage \"{}\" is not indexed by its own axes, one per dimension", stage.name),
        {}, mark);
}

/// Position of the loop that both new nests take the place of: the outermost one with nothing but
/// the stage inside, or else the outermost reduction loop.
size_t place_of_nests(const StagePath& path) {
  size_t outermost = 0;
  while (!binds_reduce(*path.stage, path.loops[outermost]->var)) ++outermost;
  for (size_t n = 0; n < outermost; ++n) {
    const Stmt& body = path.loops[n]->body;
    if (stage_paths(body).size() == 1 && allocated(body).empty()) return n;
  }
  return outermost;
}

/// What stands in the loops from position `first` on must allow two nests instead of one.
void check_nest(const StagePath& path, size_t first, const std::string& mark) {
  const Stage& stage = *path.stage;
  check_not_vectorized(path, first, "partial results");
  for (size_t n = first; n < path.loops.size(); ++n) {
    const For& loop = *path.loops[n];
    if (loop.mark != LoopMark::serial || !loop.notes.empty())
      refuse(Rule::rfactor_marked,
             fmt::format("loop \"{}\" is marked; marks come after rfactor", loop.var.name()),
             "rfactor first, then mark the loops of both stages", full_name(path, n));
  }
  for (const StagePath& other : stage_paths(path.loops[first]->body))
    for (const Buffer& b : stage.outputs)
      if (other.stage != &stage && (reads(*other.stage, b) || writes(*other.stage, b)))
        refuse(Rule::rfactor_touched,
               fmt::format("stage \"{}\" touches {} inside the reduction of \"{}\"",
                           other.stage->name, b->name, stage.name),
               "rfactor before other stages are placed there", mark);
}

Buffer partial_buffer(const Program& program, const Buffer& whole, size_t dim, const Expr& extent) {
  std::vector<Expr> shape = whole->shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), extent);
  return Buffer(fresh_name(program, whole->name + ".rf"), whole->dtype, std::move(shape));
}

/// C.rf: one axis for each loop that ran the reduction, of which the factored one is spatial.
Stage partial_stage(const StagePath& path, const For& factored, size_t dim, std::string name,
                    std::vector<Buffer> partial) {
  Stage out = *path.stage;
  out.name = std::move(name);
  out.outputs = std::move(partial);
  out.init = out.combiner->identity;
  std::erase_if(out.axes, [](const AxisBinding& b) { return b.kind != AxisKind::spatial; });
  const Axis part(factored.var.name(), factored.extent);
  VarMap loops_as_axes = {{factored.var, part}};
  const auto place = static_cast<std::ptrdiff_t>(dim);
  out.axes.insert(out.axes.begin() + place, {part, AxisKind::spatial, factored.var});
  out.indices.insert(out.indices.begin() + place, part);
  for (const For* l : path.loops) {
    if (l == &factored || !binds_reduce(*path.stage, l->var)) continue;
    const Axis axis(l->var.name(), l->extent);
    loops_as_axes.emplace(l->var, axis);
    out.axes.push_back({axis, AxisKind::reduce, l->var});
  }
  VarMap reduce_axes;
  for (const AxisBinding& b : path.stage->axes)
    if (b.kind != AxisKind::spatial)
      reduce_axes.emplace(b.axis.var, substitute(b.value, loops_as_axes));
  for (Expr& e : out.values) e = substitute(e, reduce_axes);
  return out;
}

/// C: combines the parts under copies of its spatial loops and the factored loop.
Stmt combining_nest(const StagePath& path, size_t first, const For& factored, size_t dim,
                    const std::vector<Buffer>& partial) {
  Stage out = *path.stage;
  out.reduce_guard = {};
  std::erase_if(out.axes, [](const AxisBinding& b) { return b.kind != AxisKind::spatial; });
  const Axis part(factored.var.name(), factored.extent);
  out.axes.push_back({part, AxisKind::reduce, factored.var});
  std::vector<Expr> at = out.indices;
  at.insert(at.begin() + static_cast<std::ptrdiff_t>(dim), part);
  for (size_t n = 0; n < partial.size(); ++n) out.values[n] = load(partial[n], at);

  VarMap copies;
  std::vector<For> loops;
  for (const For* l : loops_from(path, first)) {
    const bool guards = out.spatial_guard.defined() && uses_var(out.spatial_guard, l->var);
    if (binds_reduce(*path.stage, l->var) || !(binds(*path.stage, l->var) || guards)) continue;
    loops.push_back(make_loop(Var(l->var.name()), l->extent, AxisKind::spatial, {}));
    copies.emplace(l->var, loops.back().var);
  }
  loops.push_back(make_loop(Var(factored.var.name()), factored.extent, AxisKind::reduce, {}));
  copies.emplace(factored.var, loops.back().var);
  Stmt body = substitute_loops(make_stmt(std::move(out)), copies);
  for (size_t n = loops.size(); n-- > 0;) {
    loops[n].body = body;
    body = make_stmt(std::move(loops[n]));
  }
  return body;
}

}  // namespace

/// for x: for k.o: for k.i: C(x) init c, += f   ->   for x: for k.o: for k.i: C.rf(x, k.i) init 0,
/// += f;  for x: for k.i: C(x) init c, += C.rf(x, k.i)
Program RFactor::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const For& factored = *path.loops[at];
  const std::string mark = full_name(path, at);
  check_combiner(*path.stage, mark);
  if (!binds_reduce(*path.stage, factored.var))
    refuse(Rule::rfactor_spatial,
           fmt::format("loop \"{}\" is no reduction loop of stage \"{}\"", loop, stage),
           "name the loop whose iterations are to be combined apart; split the reduction first",
           mark);
  const auto rank = static_cast<int64_t>(path.stage->indices.size());
  if (dim < -1 || dim > rank)
    refuse(Rule::rfactor_dim,
           fmt::format("dim is {}; the new dimension stands at one of 0 to {}, or last (-1)", dim,
                       rank),
           {}, mark);
  const size_t first = place_of_nests(path);
  check_nest(path, first, mark);

  const auto place = static_cast<size_t>(dim < 0 ? rank : dim);
  std::vector<Buffer> partial;
  for (const Buffer& b : path.stage->outputs)
    partial.push_back(partial_buffer(program, b, place, factored.extent));
  const Stage parts =
      partial_stage(path, factored, place, fresh_name(program, stage + ".rf"), partial);
  Program out = program;
  out.body = replace_loop(program.body, path.loops[first]->var, [&](const For& l) {
    Stmt nest = replace_stage(make_stmt(For(l)), stage,
                              [&](const Stage&) { return make_stmt(Stage(parts)); });
    nest = replace_loop(nest, factored.var, [](const For& k) {
      For spatial = k;
      spatial.kind = AxisKind::spatial;
      return make_stmt(std::move(spatial));
    });
    Stmt both = seq({nest, combining_nest(path, first, factored, place, partial)});
    for (const Buffer& b : partial) both = make_stmt(Allocate{b, both});
    return both;
  });
  return out;
}

}  // namespace tenon
