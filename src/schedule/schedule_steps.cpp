#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>

#include "schedule/tree.h"

namespace tenon {
namespace {

/// A step names its loops over one stage; a handle of another stage is good where it means a loop
/// round both.
void demand_one_stage(const Schedule& s, const Primitive& step, const std::string& stage,
                      const Loop& loop) {
  if (loop.stage == stage) return;
  const auto var_of = [&](const std::string& over) {
    const StagePath path = find_stage(s.program(), over);
    return path.loops[find_loop(path, loop.name)]->var;
  };
  try {
    if (var_of(loop.stage).same_as(var_of(stage))) return;
  } catch (const Refusal& refusal) {
    throw ScheduleError(s.message(step, refusal));
  }
  Refusal refusal;
  refusal.rule = fmt::format("loop \"{}\" is not round stage \"{}\"", loop.full_name(), stage);
  refusal.hint = fmt::format("name loops of stage \"{}\"", stage);
  refusal.loop = loop.full_name();
  refusal.id = "no_loop";
  throw ScheduleError(s.message(step, refusal));
}

}  // namespace

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
  const Tile step{o.stage, o.name, i.name, outer_factor, inner_factor};
  demand_one_stage(self().schedule(), step, o.stage, i);
  self().schedule().apply(step);
  return {{o.stage, o.name + ".o"},
          {o.stage, i.name + ".o"},
          {o.stage, o.name + ".i"},
          {o.stage, i.name + ".i"}};
}

template <class Self>
Loop ScheduleSteps<Self>::fuse(const LoopRef& outer, const LoopRef& inner) {
  const Loop o = resolve(outer), i = resolve(inner);
  const Fuse step{o.stage, o.name, i.name};
  demand_one_stage(self().schedule(), step, o.stage, i);
  self().schedule().apply(step);
  return {o.stage, o.name + "_" + i.name};
}

template <class Self>
Self& ScheduleSteps<Self>::reorder(const std::vector<LoopRef>& loops) {
  Reorder step;
  for (const LoopRef& ref : loops) step.loops.push_back(ref.name);
  step.stage = loops.empty() ? self().spoken_stage() : resolve(loops[0]).stage;
  for (const LoopRef& ref : loops)
    demand_one_stage(self().schedule(), step, step.stage, resolve(ref));
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
  const Program& before = self().schedule().program();
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
Self& ScheduleSteps<Self>::reverse_compute_inline() {
  self().schedule().apply(ReverseComputeInline{self().spoken_stage()});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::pad_einsum(const std::vector<int64_t>& paddings) {
  self().schedule().apply(PadEinsum{self().spoken_stage(), paddings});
  return self();
}

template <class Self>
std::string ScheduleSteps<Self>::pack(const StageRef& buffer, const std::vector<LayoutDim>& layout,
                                      const PackOptions& options) {
  std::string made = fresh_name(self().schedule().program(), buffer.name + ".packed");
  self().schedule().apply(Pack{buffer.name, layout, options.when});
  return self().schedule().has_stage(made) ? made : "";
}

template <class Self>
Self& ScheduleSteps<Self>::storage_align(const StageRef& buffer, int64_t dim, int64_t factor,
                                         int64_t offset) {
  self().schedule().apply(StorageAlign{buffer.name, dim, factor, offset});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::prefetch(const StageRef& buffer, const LoopRef& loop, int64_t distance,
                                    const PrefetchOptions& options) {
  const Loop l = resolve(loop);
  const std::string over = options.over ? resolve(*options.over).name : "";
  self().schedule().apply(Prefetch{l.stage, buffer.name, l.name, distance, over});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::double_buffer(const StageRef& buffer, const LoopRef& loop) {
  const Loop l = resolve(loop);
  self().schedule().apply(DoubleBuffer{l.stage, buffer.name, l.name});
  return self();
}

template <class Self>
Self& ScheduleSteps<Self>::annotate(const LoopRef& loop, const std::string& key, int64_t value) {
  const Loop l = resolve(loop);
  self().schedule().apply(Annotate{l.stage, l.name, key, value});
  return self();
}

template <class Self>
std::vector<Loop> ScheduleSteps<Self>::loops() {
  const std::string stage = self().spoken_stage();
  std::vector<Loop> out;
  for (const StagePath& path : self().schedule().paths())
    if (path.stage->name == stage)
      for (const For* l : path.loops) out.push_back({stage, l->var.name()});
  return out;
}

template class ScheduleSteps<Schedule>;
template class ScheduleSteps<StageSteps>;

}  // namespace tenon
