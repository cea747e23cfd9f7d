#include <tenon/schedule/loop_primitives.h>

#include <algorithm>

#include "schedule/field_text.h"
#include "schedule/mark.h"
#include "schedule/place.h"

namespace tenon {
namespace {

bool is_vectorized(const For* loop) { return makes_lanes(loop->mark); }

void check_nesting(const StagePath& path, size_t at, const std::vector<StagePath>& inside) {
  const For& loop = *path.loops[at];
  const std::string mark = full_name(path, at);
  if (const std::vector<Buffer> own = allocated(loop.body); !own.empty())
    refuse(Rule::vectorize_allocated,
           fmt::format("buffer {} is allocated inside loop \"{}\"; each lane would need its own",
                       own[0]->name, loop.var.name()),
           "vectorize a loop inside", mark);
  const For* other = nullptr;
  for (size_t n = 0; n < at; ++n)
    if (is_vectorized(path.loops[n])) other = path.loops[n];
  for (const StagePath& p : inside) {
    const auto found = std::find_if(p.loops.begin(), p.loops.end(), is_vectorized);
    if (found != p.loops.end()) other = *found;
  }
  if (other)
    refuse(Rule::vectorize_nested,
           fmt::format("loop \"{}\" is vectorized already; a nest has one vectorized loop",
                       other->var.name()),
           {}, mark);
}

/// Bytes of the widest element that the stages under the loop store decide the lanes.
DType widest_store(const std::vector<StagePath>& inside) {
  DType widest = DType::i8;
  int bytes = 0;
  for (const StagePath& p : inside)
    for (const Buffer& b : p.stage->outputs)
      if (byte_size(b->dtype) > bytes) {
        bytes = byte_size(b->dtype);
        widest = b->dtype;
      }
  return widest;
}

/// Every stage under the loop has a guard that depends on it: lowering turns that into a mask.
bool is_guarded(const Var& loop, const std::vector<StagePath>& inside) {
  return std::all_of(inside.begin(), inside.end(), [&](const StagePath& p) {
    return uses_var(p.stage->spatial_guard, loop) || uses_var(p.stage->reduce_guard, loop);
  });
}

/// A reduction whose lanes one operation combines into its element.
bool combines_lanes(const StagePath& path, const For& loop, const std::vector<StagePath>& inside) {
  const Stage& stage = *path.stage;
  return loop.kind == AxisKind::reduce && binds_reduce(stage, loop.var) && stage.combiner &&
         combiner_op(*stage.combiner) && indexed_by_axes(stage) && stage.outputs.size() == 1 &&
         inside.size() == 1;
}

}  // namespace

/// for x in 0..n: S(x)   ->   for x in 0..n  vectorize: S(x)
Program Vectorize::apply(const Program& program, const Target& target) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const For& l = *path.loops[at];
  const std::string mark = full_name(path, at);
  check_unmarked(path, at, LoopMark::vectorize);
  if (is_vectorized(&l)) return program;
  if (tail != Tail::exact && tail != Tail::mask)
    refuse(Rule::vectorize_tail_word,
           fmt::format("tail {} is for split; vectorize has no rest (exact) or masks it (mask)",
                       name(tail)),
           {}, mark);
  const std::optional<int64_t> n = extent_of(l);
  if (!n)
    refuse(Rule::vectorize_symbolic,
           fmt::format("loop \"{}\" has the symbolic extent {}; vectorize needs a constant", loop,
                       print(l.extent)),
           "split it by the number of lanes first", mark);
  const std::vector<StagePath> inside = stage_paths(l.body);
  if (!combines_lanes(path, l, inside)) check_iterations(path, at, "vectorize");
  check_nesting(path, at, inside);
  const DType widest = widest_store(inside);
  const int lanes = target.lanes(widest);
  if (*n % lanes != 0 && tail == Tail::exact && !is_guarded(l.var, inside))
    refuse(
        Rule::vectorize_lanes,
        fmt::format("loop \"{}\" has extent {}; vectorize needs a multiple of {} ({} lanes of {})",
                    loop, *n, lanes, name(widest), target.name),
        fmt::format("split it by {} first, or vectorize with {{.tail = Tail::mask}}", lanes), mark);
  return with_mark(program, l.var, LoopMark::vectorize);
}

}  // namespace tenon
