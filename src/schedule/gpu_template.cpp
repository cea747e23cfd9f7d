#include "schedule/gpu_template.h"

#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "schedule/tree.h"

namespace tenon {
namespace {

struct Named {
  std::string name;
  int64_t extent = 1;
};

/// The spatial loops that stand outermost, one directly in the other.
std::vector<Named> outer_spatial(const StagePath& path) {
  std::vector<Named> out;
  for (size_t n = 0; n < path.loops.size(); ++n) {
    const For& l = *path.loops[n];
    const int64_t extent = extent_of(l).value_or(0);
    if (extent < 1 || l.mark != LoopMark::serial || binds_reduce(*path.stage, l.var)) break;
    if (n > 0 && path.loops[n - 1]->body.as<For>() != &l) break;
    out.push_back({l.var.name(), extent});
  }
  return out;
}

/// Sizes of a block's tile: threads along rows and columns, elements of each thread, and the
/// length of the strips that are staged.
struct GpuTile {
  int64_t thread_rows = 8, thread_columns = 8, rows = 2, columns = 2, strip = 8;
};

/// Fuses loops that stand one directly in the other; the name of what they become.
std::string fuse_all(StageSteps stage, const std::vector<std::string>& loops) {
  std::string whole = loops.at(0);
  for (size_t n = 1; n < loops.size(); ++n) whole = stage.fuse(whole, loops[n]).name;
  return whole;
}

/// The copy made by cache_read, spread over the threads of the block.
void spread_copy(Schedule& s, const std::string& copy, size_t outside, int64_t threads) {
  std::vector<std::string> own;
  const std::vector<Loop> loops = s[copy].loops();
  for (size_t n = outside; n < loops.size(); ++n) own.push_back(loops[n].name);
  if (own.empty()) return;
  const std::string whole = fuse_all(s[copy], own);
  s[copy].split(whole, threads);
  s[copy].bind(whole + ".i", ThreadAxis::thread_x);
}

/// Throws ScheduleError where a step is not legal here.
void tile_anchor(Schedule& s, const std::string& anchor, const GpuTile& t) {
  const StagePath path = find_stage(s.program(), anchor);
  std::vector<std::string> spatial, reduce, inputs;
  for (const For* l : path.loops)
    (binds_reduce(*path.stage, l->var) ? reduce : spatial).push_back(l->var.name());
  for (const Buffer& b : inputs_of(*path.stage))
    if (!writes(*path.stage, b)) inputs.push_back(b->name);
  const std::string output = path.stage->outputs[0]->name, j = spatial.back(),
                    i = spatial[spatial.size() - 2];
  StageSteps c = s[anchor];
  c.split(i, t.thread_rows * t.rows);
  c.split(i + ".i", t.rows);
  c.split(j, t.thread_columns * t.columns);
  c.split(j + ".i", t.columns);
  c.split(reduce[0], t.strip);
  std::vector<LoopRef> order(spatial.begin(), spatial.end() - 2);
  const std::string ko = reduce[0] + ".o";
  for (const std::string& loop : {i + ".o", j + ".o", ko, i + ".i.o", j + ".i.o", reduce[0] + ".i"})
    order.emplace_back(loop);
  for (size_t n = 1; n < reduce.size(); ++n) order.emplace_back(reduce[n]);
  order.emplace_back(i + ".i.i");
  order.emplace_back(j + ".i.i");
  c.reorder(order);
  const CacheWriteStages made = c.cache_write(j + ".o");
  if (spatial.size() > 2) {
    const std::string batch = fuse_all(c, {spatial.begin(), spatial.end() - 2});
    c.bind(batch, ThreadAxis::block_z);
  }
  c.bind(i + ".o", ThreadAxis::block_y).bind(j + ".o", ThreadAxis::block_x);
  const int64_t threads = t.thread_rows * t.thread_columns;
  const std::string thread = c.fuse(i + ".i.o", j + ".i.o").name;
  c.bind(thread, ThreadAxis::thread_x);
  const size_t outside = s[made.store].loops().size() - spatial.size();
  const std::vector<Loop> store = s[made.store].loops();
  const std::string si = store[store.size() - 2].name, sj = store.back().name;
  StageSteps out = s[made.store];
  out.split(si, t.rows);
  out.split(sj, t.columns);
  out.reorder({si + ".o", sj + ".o", si + ".i", sj + ".i"});
  out.bind(out.fuse(si + ".o", sj + ".o").name, ThreadAxis::thread_x);
  for (const std::string& input : inputs)
    spread_copy(s, c.cache_read(input, ko, {.scope = Scope::shared}), outside + 1, threads);
  c.unroll(i + ".i.i").unroll(j + ".i.i");
  out.unroll(si + ".i").unroll(sj + ".i");
  s.set_scope(output + ".cache", Scope::reg);
}

}  // namespace

bool has_gpu_tile(const Program& program) {
  const std::string anchor = roles(program).anchor;
  if (anchor.empty()) return false;
  const StagePath path = find_stage(program, anchor);
  size_t spatial = 0, reduce = 0;
  for (const For* l : path.loops) {
    if (extent_of(*l).value_or(0) < 1) return false;
    ++(binds_reduce(*path.stage, l->var) ? reduce : spatial);
  }
  return path.stage->combiner && path.stage->outputs.size() == 1 && spatial >= 2 && reduce >= 1;
}

void gpu_tile_template(Schedule& s, Knobs& knobs) {
  const GpuTile tile{knobs.pick("thread_rows", {2, 4, 8, 16}, 8),
                     knobs.pick("thread_columns", {4, 8, 16, 32}, 8),
                     knobs.pick("rows", {1, 2, 4, 8}, 4), knobs.pick("columns", {1, 2, 4, 8}, 4),
                     knobs.pick("strip", {4, 8, 16, 32}, 8)};
  const std::string anchor = roles(s.program()).anchor;
  Schedule tiled = s;
  try {
    tile_anchor(tiled, anchor, tile);
    s = tiled;
  } catch (const ScheduleError&) {  // the shape does not allow it: one element a thread
    bind_nest(s, anchor, 64);
  }
  for (const std::string& stage : s.stages()) bind_nest(s, stage, 64);
}

/// for i: for j: for k: C   ->   for i_j.o  block_x: for i_j.i  thread_x: for k: C.cache (register)
void bind_nest(Schedule& s, const std::string& stage, int64_t threads) {
  const StagePath path = find_stage(s.program(), stage);
  const bool reduction = path.stage->combiner != nullptr;
  std::vector<Named> loops = outer_spatial(path);
  if (loops.empty()) return;
  Named whole = loops[0];
  for (size_t n = 1; n < loops.size(); ++n) {
    if (s.try_apply(Fuse{stage, whole.name, loops[n].name})) break;
    whole = {whole.name + "_" + loops[n].name, whole.extent * loops[n].extent};
  }
  threads = std::min({threads, whole.extent, s.target().limits.threads_per_block});
  if (s.try_apply(Split{stage, whole.name, threads})) return;
  if (s.try_apply(Bind{stage, whole.name + ".o", ThreadAxis::block_x})) return;
  if (s.try_apply(Bind{stage, whole.name + ".i", ThreadAxis::thread_x})) return;
  if (reduction) s.try_apply(CacheWrite{stage, whole.name + ".i", Scope::reg});
}

}  // namespace tenon
