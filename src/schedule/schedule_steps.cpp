#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>

#include "schedule/tree.h"

namespace tenon {

template <class Self>
Loop ScheduleSteps<Self>::resolve(const LoopRef& loop) {
  return {loop.stage.empty() ? self().spoken_stage() : loop.stage, loop.name};
}

template <class Self>
SplitLoops ScheduleSteps<Self>::split(const LoopRef& loop, int64_t factor,
                                      const SplitOptions& options) {
  const Loop l = resolve(loop);
  self().schedule().apply(Split{l.stage, l.name, factor, options.tail});
  return {{l.stage, l.name + ".o"}, {l.stage, l.name + ".i"}};
}

template <class Self>
TileLoops ScheduleSteps<Self>::tile(const LoopRef& outer, const LoopRef& inner,
                                    int64_t outer_factor, int64_t inner_factor) {
  const Loop o = resolve(outer), i = resolve(inner);
  self().schedule().apply(Tile{o.stage, o.name, i.name, outer_factor, inner_factor});
  return {{o.stage, o.name + ".o"},
          {o.stage, i.name + ".o"},
          {o.stage, o.name + ".i"},
          {o.stage, i.name + ".i"}};
}

template <class Self>
Loop ScheduleSteps<Self>::fuse(const LoopRef& outer, const LoopRef& inner) {
  const Loop o = resolve(outer), i = resolve(inner);
  self().schedule().apply(Fuse{o.stage, o.name, i.name});
  return {o.stage, o.name + "_" + i.name};
}

template <class Self>
Self& ScheduleSteps<Self>::reorder(const std::vector<LoopRef>& loops) {
  Reorder step;
  for (const LoopRef& ref : loops) {
    const Loop l = resolve(ref);
    if (step.stage.empty()) step.stage = l.stage;
    step.loops.push_back(l.name);
  }
  if (step.stage.empty()) step.stage = self().spoken_stage();
  self().schedule().apply(step);
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::parallel(const LoopRef& loop) {
  const Loop l = resolve(loop);
  self().schedule().apply(Parallel{l.stage, l.name});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::vectorize(const LoopRef& loop, const VectorizeOptions& options) {
  const Loop l = resolve(loop);
  self().schedule().apply(Vectorize{l.stage, l.name, options.tail});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::unroll(const LoopRef& loop) {
  const Loop l = resolve(loop);
  self().schedule().apply(Unroll{l.stage, l.name});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::partition(const LoopRef& loop) {
  const Loop l = resolve(loop);
  self().schedule().apply(Partition{l.stage, l.name});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::tensorize(const LoopRef& loop, const IntrinsicRef& intrinsic) {
  const Loop l = resolve(loop);
  self().schedule().apply(Tensorize{l.stage, l.name, intrinsic});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::bind(const LoopRef& loop, ThreadAxis axis) {
  const Loop l = resolve(loop);
  self().schedule().apply(Bind{l.stage, l.name, axis});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::compute_at(const LoopRef& loop) {
  return compute_at(StageRef(loop.stage), loop.name);
}

template <class Self>
Self& ScheduleSteps<Self>::compute_at(const StageRef& at_stage, const std::string& loop) {
  self().schedule().apply(ComputeAt{self().spoken_stage(), at_stage.name, loop});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::reverse_compute_at(const LoopRef& loop) {
  return reverse_compute_at(StageRef(loop.stage), loop.name);
}

template <class Self>
Self& ScheduleSteps<Self>::reverse_compute_at(const StageRef& at_stage, const std::string& loop) {
  self().schedule().apply(ReverseComputeAt{self().spoken_stage(), at_stage.name, loop});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::compute_inline() {
  self().schedule().apply(ComputeInline{self().spoken_stage()});
  return self();
}

template <class Self>
std::string ScheduleSteps<Self>::cache_read(const StageRef& buffer, const LoopRef& at,
                                            const CacheReadOptions& options) {
  const Loop l = resolve(at);
  std::string made = fresh_name(self().schedule().program(), buffer.name + ".cache");
  self().schedule().apply(CacheRead{l.stage, buffer.name, l.name, options.scope, options.layout});
  return made;
}

template <class Self>
CacheWriteStages ScheduleSteps<Self>::cache_write(const LoopRef& at,
                                                  const CacheWriteOptions& options) {
  const Loop l = resolve(at);
  const Program before = self().schedule().program();
  CacheWriteStages made{fresh_name(before, l.stage + ".load"),
                        fresh_name(before, l.stage + ".store")};
  self().schedule().apply(CacheWrite{l.stage, l.name, options.scope});
  if (!self().schedule().has_stage(made.load)) made.load.clear();
  return made;
}

template <class Self>
Self& ScheduleSteps<Self>::set_scope(const StageRef& buffer, Scope scope) {
  self().schedule().apply(SetScope{buffer.name, scope});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::decompose_reduction(const LoopRef& loop) {
  const Loop l = resolve(loop);
  self().schedule().apply(DecomposeReduction{l.stage, l.name});
  return self();
}

template <class Self>
std::string ScheduleSteps<Self>::rfactor(const LoopRef& loop, const RFactorOptions& options) {
  const Loop l = resolve(loop);
  std::string made = fresh_name(self().schedule().program(), l.stage + ".rf");
  self().schedule().apply(RFactor{l.stage, l.name, options.dim});
  return made;
}

template <class Self>
std::vector<Loop> ScheduleSteps<Self>::loops() {
  const std::string stage = self().spoken_stage();
  std::vector<Loop> out;
  for (const StagePath& path : stage_paths(self().schedule().program().body))
    if (path.stage->name == stage)
      for (const For* l : path.loops) out.push_back({stage, l->var.name()});
  return out;
}

template class ScheduleSteps<Schedule>;
template class ScheduleSteps<StageSteps>;

}  // namespace tenon
