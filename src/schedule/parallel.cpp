#include <tenon/schedule/loop_primitives.h>

#include "schedule/mark.h"

namespace tenon {

/// for x in 0..n: S(x)   ->   for x in 0..n  parallel: S(x)
Program Parallel::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  check_unmarked(path, at, LoopMark::parallel);
  for (size_t n = 0; n < at; ++n)
    if (makes_lanes(path.loops[n]->mark))
      refuse(Rule::parallel_in_vectorized,
             fmt::format("loop \"{}\" is inside the vectorized loop \"{}\"", loop,
                         path.loops[n]->var.name()),
             "run an outer loop in parallel", full_name(path, at));
  check_iterations(path, at, "parallel");
  return with_mark(program, path.loops[at]->var, LoopMark::parallel);
}

}  // namespace tenon
