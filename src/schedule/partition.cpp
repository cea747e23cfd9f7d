#include <tenon/schedule/loop_primitives.h>

#include <algorithm>

#include "schedule/tree.h"

namespace tenon {

/// for x.o: S(x.o)  if x.o*f + x.i < n   ->   for x.o  partition: ...   (lowering peels it into
/// body and tail)
Program Partition::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const Var& var = path.loops[at]->var;
  const std::vector<StagePath> stages = stage_paths(path.loops[at]->body);
  const bool guarded = std::any_of(stages.begin(), stages.end(), [&](const StagePath& p) {
    const Expr &a = p.stage->spatial_guard, &b = p.stage->reduce_guard;
    return (a.defined() && uses_var(a, var)) || (b.defined() && uses_var(b, var));
  });
  if (!guarded)
    refuse(fmt::format("no guard depends on loop \"{}\", so there is nothing to peel", loop), {},
           full_name(path, at));
  Program out = program;
  out.body = replace_loop(program.body, var, [&](const For& l) {
    For marked = l;
    marked.notes["partition"] = 1;
    return make_stmt(std::move(marked));
  });
  return out;
}

}  // namespace tenon
