#include <tenon/schedule/stage_primitives.h>

#include "schedule/dependence.h"
#include "schedule/place.h"

namespace tenon {
namespace {

/// Buffers that the init writes and reads.
std::vector<Buffer> used_by_init(const Stage& stage) {
  std::vector<Buffer> out = stage.outputs;
  for (const Expr& e : stage.init)
    walk(e, [&](const Expr& part) {
      if (const Load* l = part.as<Load>()) out.push_back(l->buffer);
      return true;
    });
  return out;
}

/// The init as a map over the stage's spatial axes, under copies of the spatial loops from position
/// `first` on.
Stmt init_nest(const Program& program, const StagePath& path, size_t first) {
  const Stage& stage = *path.stage;
  Stage init;
  init.name = fresh_name(program, stage.name + ".init");
  for (const AxisBinding& b : stage.axes)
    if (b.kind == AxisKind::spatial) init.axes.push_back(b);
  init.spatial_guard = stage.spatial_guard;
  init.outputs = stage.outputs;
  init.indices = stage.indices;
  init.values = stage.init;

  VarMap copies;
  std::vector<std::pair<Var, const For*>> loops;
  for (const For* l : loops_from(path, first)) {
    if (binds_reduce(stage, l->var)) continue;
    loops.emplace_back(Var(l->var.name()), l);
    copies.emplace(l->var, loops.back().first);
  }
  Stmt body = substitute_loops(make_stmt(std::move(init)), copies);
  for (size_t n = loops.size(); n-- > 0;)
    body = make_stmt(make_loop(loops[n].first, loops[n].second->extent, AxisKind::spatial, body));
  return body;
}

}  // namespace

/// for x: for k: C(x) init 0, += ...   ->   for x: C.init(x) = 0;  for x: for k: C(x) += ...
Program DecomposeReduction::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const std::string mark = full_name(path, at);
  if (!path.stage->combiner)
    refuse(Rule::decompose_map, fmt::format("stage \"{}\" is not a reduction", stage), {}, mark);
  if (path.stage->init.empty())
    refuse(Rule::decompose_no_init,
           fmt::format("stage \"{}\" has no init of its own; another stage starts its elements",
                       stage),
           {}, mark);
  for (size_t n = 0; n < at; ++n)
    if (binds_reduce(*path.stage, path.loops[n]->var))
      refuse(
          Rule::decompose_in_reduction,
          fmt::format(
              "loop \"{}\" is inside the reduction loop \"{}\": the init would run again and again",
              loop, path.loops[n]->var.name()),
          fmt::format("decompose at \"{}\" or outside it", path.loops[n]->var.name()), mark);
  for (const For* l : loops_from(path, at))
    if (!binds(*path.stage, l->var))
      refuse(Rule::decompose_anew,
             fmt::format("stage \"{}\" is computed anew in each iteration of \"{}\", which is not "
                         "outside \"{}\"",
                         stage, l->var.name(), loop),
             "decompose at a loop inside it", mark);
  for (size_t n = at; n < path.loops.size(); ++n)
    for (const Buffer& b : path.stage->outputs)
      if (!binds_reduce(*path.stage, path.loops[n]->var))
        if (auto why = conflict_on_buffer(path, n, b))
          refuse(Rule::decompose_overlap,
                 *why + "; with one init for both it would be updated twice",
                 "decompose at a loop inside it", full_name(path, n));
  for (const Buffer& b : used_by_init(*path.stage))
    if (loops_round_allocate(program, b).size() > at)
      refuse(
          Rule::decompose_allocated,
          fmt::format("{} is allocated inside loop \"{}\", and the init needs it before the loop",
                      b->name, loop),
          "choose a loop inside its allocation", mark);

  Stage update = *path.stage;
  update.init.clear();
  Program out = program;
  out.body = replace_loop(program.body, path.loops[at]->var, [&](const For& l) {
    const Stmt rest = replace_stage(make_stmt(For(l)), stage,
                                    [&](const Stage&) { return make_stmt(Stage(update)); });
    return seq({init_nest(program, path, at), rest});
  });
  return out;
}

}  // namespace tenon
