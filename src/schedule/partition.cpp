#include <tenon/ir/notes.h>
#include <tenon/schedule/loop_primitives.h>

#include <algorithm>

#include "schedule/region.h"

namespace tenon {
namespace {

/// Conditions that a peeled loop can decide: guards, and those of selects (padding), over the
/// loops.
std::vector<Expr> conditions_of(const Stage& stage) {
  std::vector<Expr> out;
  for (const Expr& e : stage.values)
    walk(e, [&](const Expr& part) {
      if (const Select* s = part.as<Select>()) out.push_back(s->condition);
      return true;
    });
  out = over_loops(stage, std::move(out));
  for (const Expr& guard : {stage.spatial_guard, stage.reduce_guard})
    if (guard.defined()) out.push_back(guard);
  return out;
}

}  // namespace

/// for x.o: S(x.o)  if x.o*f + x.i < n   ->   for x.o  partition: ...   (lowering peels it into
/// body and tail)
Program Partition::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const Var& var = path.loops[at]->var;
  bool decides = false;
  for (const StagePath& p : stage_paths(path.loops[at]->body))
    for (const Expr& c : conditions_of(*p.stage)) decides = decides || uses_var(c, var);
  if (!decides)
    refuse(
        Rule::partition_nothing,
        fmt::format("no guard or select depends on loop \"{}\", so there is nothing to peel", loop),
        {}, full_name(path, at));
  Program out = program;
  out.body = replace_loop(program.body, var, [&](const For& l) {
    For marked = l;
    marked.notes[std::string(kPartitionNote)] = 1;
    return make_stmt(std::move(marked));
  });
  return out;
}

}  // namespace tenon
