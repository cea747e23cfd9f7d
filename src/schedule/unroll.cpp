#include <tenon/schedule/loop_primitives.h>

#include <algorithm>

#include "schedule/mark.h"

namespace tenon {
namespace {

constexpr int64_t kMaxCopies = 1024;

/// Copies of the innermost body that unrolling this loop would make, counting unrolled loops round
/// and inside it.
int64_t copies(const StagePath& path, size_t at) {
  const For& loop = *path.loops[at];
  auto factor = [](const For* l) {
    return l->mark == LoopMark::unroll ? extent_of(*l).value_or(1) : 1;
  };
  int64_t outside = extent_of(loop).value_or(1), inside = 1;
  for (size_t n = 0; n < at; ++n)
    outside = std::min(outside * factor(path.loops[n]), kMaxCopies * kMaxCopies);
  for (const StagePath& p : stage_paths(loop.body)) {
    int64_t product = 1;
    for (const For* l : p.loops) product = std::min(product * factor(l), kMaxCopies * kMaxCopies);
    inside = std::max(inside, product);
  }
  return outside * inside;
}

}  // namespace

/// for x in 0..n: S(x)   ->   for x in 0..n  unroll: S(x)
Program Unroll::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const For& l = *path.loops[at];
  check_unmarked(path, at, LoopMark::unroll);
  if (!extent_of(l))
    refuse(Rule::unroll_symbolic,
           fmt::format("loop \"{}\" has the symbolic extent {}; unroll needs a constant", loop,
                       print(l.extent)),
           "split it by a constant first", full_name(path, at));
  const int64_t total = l.mark == LoopMark::unroll ? 0 : copies(path, at);
  if (total > kMaxCopies)
    refuse(Rule::unroll_limit,
           fmt::format(
               "unrolling loop \"{}\" (extent {}) gives {} copies of the body; the limit is {}",
               loop, *extent_of(l), total, kMaxCopies),
           "split it and unroll the inner part", full_name(path, at));
  return with_mark(program, l.var, LoopMark::unroll);
}

}  // namespace tenon
