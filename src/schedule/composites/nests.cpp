#include "schedule/composites/nests.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/schedule/roles.h>
#include <tenon/schedule/work.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "schedule/composites/cost.h"
#include "schedule/composites/unscheduled.h"

namespace tenon {
namespace {

StagePath path_of(const Schedule& s, const std::string& stage) {
  for (StagePath& path : stage_paths(s.program().body))
    if (path.stage->name == stage) return path;
  throw InternalError(fmt::format("no stage \"{}\" in the program", stage));
}

/// Still the plain nest that the formula gave, at the root.
bool untouched(const StagePath& path) {
  if (path.loops.size() != path.stage->axes.size()) return false;
  for (size_t n = 0; n < path.loops.size(); ++n) {
    const VarRef* bound = path.stage->axes[n].value.as<VarRef>();
    if (!bound || !bound->var.same_as(path.loops[n]->var) ||
        path.loops[n]->mark != LoopMark::serial)
      return false;
  }
  return true;
}

std::vector<Loop> spatial_loops(const StagePath& path) {
  std::vector<Loop> loops;
  for (const For* loop : path.loops)
    if (loop->kind == AxisKind::spatial) loops.push_back({path.stage->name, loop->var.name()});
  return loops;
}

int64_t lanes_of(const Schedule& s, const std::string& stage) {
  return s.target().lanes(path_of(s, stage).stage->outputs[0]->dtype);
}

}  // namespace

std::vector<int64_t> ladder(int64_t most, const std::vector<int64_t>& steps, int64_t standard) {
  std::vector<int64_t> values = {standard};
  for (int64_t step : steps)
    if (step <= most && step != standard) values.push_back(step);
  std::sort(values.begin(), values.end());
  return values;
}

int64_t loop_extent(const Schedule& s, const Loop& loop) {
  const StagePath path = path_of(s, loop.stage);
  for (size_t n = path.loops.size(); n-- > 0;)
    if (path.loops[n]->var.name() == loop.name) return most_iterations(*path.loops[n]);
  throw InternalError(fmt::format("no loop \"{}\" round stage \"{}\"", loop.name, loop.stage));
}

std::vector<Loop> loops_below(Schedule& s, const std::string& stage, const Loop& tile_loop) {
  std::vector<Loop> all = s[stage].loops();
  // The stage's own loops, further inside, may have the same name.
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Loop& l) { return l.name == tile_loop.name; });
  TENON_CHECK(at != all.end(), "stage {} is not inside loop {}", stage, tile_loop.name);
  return std::vector<Loop>(at + 1, all.end());
}

double balance(int64_t pieces, int cores) {
  if (pieces <= 0) return 0;
  const int64_t rounds = (pieces + cores - 1) / cores;
  return static_cast<double>(pieces) / static_cast<double>(rounds * cores);
}

Loop fuse_and_parallel(Schedule& s, const std::string& stage, std::vector<Loop> loops) {
  if (loops.empty()) return {};
  Loop outer = loops[0];
  for (size_t n = 1; n < loops.size(); ++n) {
    if (balance(loop_extent(s, outer), s.target().cores) > 0.9) break;
    if (s.try_apply(Fuse{stage, outer.name, loops[n].name})) break;
    outer.name += "_" + loops[n].name;
  }
  if (worth_threads(s.program(), stage, loop_extent(s, outer), s.target()))
    s.try_apply(Parallel{stage, outer.name});
  return outer;
}

void finish_map_in_tile(Schedule& s, const std::string& stage, const Loop& tile_loop) {
  const std::vector<Loop> loops = loops_below(s, stage, tile_loop);
  for (size_t n = 0; n + 1 < loops.size(); ++n) s[stage].unroll(loops[n]);
  if (!loops.empty()) s[stage].vectorize(loops.back(), {Tail::mask});
}

void finish_map_across(Schedule& s, const std::string& stage, const Loop& tile_loop,
                       size_t dimension, int64_t lanes) {
  std::vector<Loop> loops = loops_below(s, stage, tile_loop);
  Loop lane = loops[dimension];
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(dimension));
  if (loop_extent(s, lane) > lanes) {
    const auto [o, i] = s[stage].split(lane, lanes);
    loops.insert(loops.begin(), o);
    lane = i;
  }
  std::vector<LoopRef> order(loops.begin(), loops.end());
  order.push_back(lane);
  s[stage].reorder(order);
  for (const Loop& l : loops) s[stage].unroll(l);
  s[stage].vectorize(lane, {Tail::mask});
}

void finish_map_in_loop(Schedule& s, const std::string& stage, const Loop& loop, int64_t vectors) {
  const std::vector<Loop> loops = loops_below(s, stage, loop);
  if (loops.empty()) return;
  const int64_t width = vectors * lanes_of(s, stage);
  Loop last = loops.back();
  if (loop_extent(s, last) > 4 * width) last = s[stage].split(last, width).inner;
  s.try_apply(Vectorize{stage, last.name, Tail::mask});
}

void schedule_root_map(Schedule& s, const std::string& stage, int64_t vectors) {
  std::vector<Loop> loops = spatial_loops(path_of(s, stage));
  if (loops.empty()) return;
  const int64_t width = vectors * lanes_of(s, stage);
  Loop last = loops.back();
  loops.pop_back();
  if (loop_extent(s, last) > width) {
    const auto [outer, inner] = s[stage].split(last, width);
    loops.push_back(outer);
    last = inner;
  }
  fuse_and_parallel(s, stage, loops);
  s.try_apply(Vectorize{stage, last.name, Tail::mask});
}

std::vector<Buffer> far_inputs(const Schedule& s, const Loop& loop) {
  int64_t cores = 1;
  for (const For* l : path_of(s, loop.stage).loops)
    if (l->mark == LoopMark::parallel) cores = s.target().cores;
  std::vector<Buffer> far;
  for (const Param& p : s.program().params)
    if (p.role == ParamRole::input && bytes_of(*p.buffer) > cores * s.target().l2_bytes)
      far.push_back(p.buffer);
  return far;
}

void fetch_ahead(Schedule& s, const std::string& stage) {
  const std::vector<Loop> loops = s[stage].loops();
  if (loops.size() < 2) return;
  const Loop& over = loops[loops.size() - 2];
  for (const Buffer& x : far_inputs(s, over)) {
    const int64_t step = loop_extent(s, loops.back()) * byte_size(x->dtype);
    s.try_apply(Prefetch{stage, x->name, over.name, ceil_div(kAheadBytes, step), ""});
  }
}

bool exceeds_caches(const Program& program, const Target& target) {
  int64_t bytes = 0;
  for (const Param& p : program.params) bytes += bytes_of(*p.buffer);
  return bytes > std::max(target.l3_bytes, target.cores * target.l2_bytes);
}

void stream_output(Schedule& s, const std::string& stage) {
  const std::vector<Loop> loops = s[stage].loops();
  if (loops.size() > 1) s[stage].annotate(loops.front(), "stream", 1);
}

void schedule_rest(Schedule& s, const std::vector<std::string>& done) {
  for (const std::string& stage : s.stages()) {
    if (std::find(done.begin(), done.end(), stage) != done.end()) continue;
    const StagePath path = path_of(s, stage);
    if (!untouched(path)) continue;
    if (!path.stage->combiner)
      schedule_root_map(s, stage, 2);
    else
      fuse_and_parallel(s, stage, spatial_loops(path));
  }
}

}  // namespace tenon
