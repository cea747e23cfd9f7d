#include <tenon/schedule/gpu_primitives.h>

#include "schedule/field_text.h"
#include "schedule/mark.h"

namespace tenon {

/// for x in 0..n: S(x)   ->   for x in 0..n  thread_x: S(x)
/// What concerns the whole kernel (nesting, memory, limits) is in kernel_rules.cpp.
Program Bind::apply(const Program& program, const Target& target) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const LoopMark mark = mark_of(axis);
  if (!target.is_gpu())
    refuse(Rule::bind_no_gpu,
           fmt::format("target {} has no blocks of threads to bind a loop to", target.name),
           "use parallel, vectorize or unroll, or schedule for --target opencl",
           full_name(path, at));
  check_unmarked(path, at, mark);
  check_iterations(path, at, "bind");
  return with_mark(program, path.loops[at]->var, mark);
}

}  // namespace tenon
