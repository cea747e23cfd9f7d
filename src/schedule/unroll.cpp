#include <tenon/schedule/loop_primitives.h>

#include <algorithm>

#include "schedule/mark.h"

namespace tenon {
namespace {

constexpr int64_t kMaxCopies = 1024;

/// Copies of its body that the unrolled loops round a stage make, at most kMaxCopies squared.
int64_t copies(const StagePath& path) {
  int64_t product = 1;
  for (const For* l : path.loops)
    if (l->mark == LoopMark::unroll)
      product = std::min(product * extent_of(*l).value_or(1), kMaxCopies * kMaxCopies);
  return product;
}

}  // namespace

void check_copies(const std::vector<StagePath>& all) {
  for (const StagePath& p : all) {
    const int64_t total = copies(p);
    if (total <= kMaxCopies) continue;
    size_t last = p.loops.size() - 1;
    while (last > 0 && p.loops[last]->mark != LoopMark::unroll) --last;
    refuse(
        Rule::unroll_limit,
        fmt::format("the unrolled loops round stage \"{}\" would give {} copies of its body; the "
                    "limit is {}",
                    p.stage->name, total, kMaxCopies),
        "split it and unroll the inner part", full_name(p, last));
  }
}

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
  return with_mark(program, l.var, LoopMark::unroll);
}

}  // namespace tenon
