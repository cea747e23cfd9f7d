#include "autotvm/sketch/multi_level_tile.h"

#include <tenon/schedule/roles.h>

#include <algorithm>

#include "autotvm/sketch/blocks.h"
#include "autotvm/sketch/copies.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/register_sum.h"

namespace tenon {
namespace {

/// The anchor's loops after cutting.
struct CutLoops {
  BlockLoops block;
  std::vector<Loop> blocks;  // of `block`, by number
  std::vector<Loop> tiles;   // the last is the tile's
  std::vector<Loop> unrolled;
  Loop vector;  // the outermost loop of what becomes one instruction
  Loop terms;   // what one instruction adds up in a lane; no name: one term
};

/// x -> x.block, x.tile, x.inner; a part of one iteration has no name, but for the tile.
struct AxisLoops {
  Loop block, tile, inner;
};

AxisLoops cut_axis(StageSteps& anchor, const LoopExtent& axis, int64_t inner, int64_t pieces) {
  AxisLoops out;
  Loop rest{anchor.name(), axis.loop};
  const int64_t tiles = ceil_div(axis.extent, inner);
  if (pieces > 1 && tiles > 1) {
    const auto [o, i] = anchor.split(rest, ceil_div(tiles, pieces) * inner);
    out.block = o;
    rest = i;
  }
  out.tile = rest;
  if (inner > 1) {
    const auto [o, i] = anchor.split(rest, inner);
    out.tile = o;
    out.inner = i;
  }
  return out;
}

/// Adds the reductions to `order`, the last `steps` points as loops to unroll.
void cut_reductions(StageSteps& anchor, std::vector<Loop> loops, std::vector<int64_t> extents,
                    int64_t steps, std::vector<LoopRef>& order, CutLoops& cut) {
  std::vector<Loop> written;
  while (!loops.empty() && steps > 1) {
    const int64_t extent = extents.back();
    if (steps % extent != 0) {
      const auto [o, i] = anchor.split(loops.back(), std::min(steps, extent));
      loops.back() = o;
      written.insert(written.begin(), i);
      break;
    }
    steps /= extent;
    written.insert(written.begin(), loops.back());
    loops.pop_back();
    extents.pop_back();
  }
  order.insert(order.end(), loops.begin(), loops.end());
  order.insert(order.end(), written.begin(), written.end());
  cut.unrolled = written;
}

/// The reductions of the nest, from the outside in; a group of terms and a block of the longest are
/// cut off.
struct Reductions {
  std::vector<Loop> loops;
  std::vector<int64_t> extents;
  Loop block;
};

Reductions cut_blocks_of_k(StageSteps& anchor, const TileSketch& sketch, const TilePlan& plan,
                           CutLoops& cut) {
  const AnchorNest& nest = *sketch.nest;
  Reductions r;
  for (size_t n = nest.spatial; n < nest.axes.size(); ++n) {
    r.loops.push_back({nest.stage, nest.axes[n].loop});
    r.extents.push_back(nest.axes[n].extent);
  }
  if (sketch.dots) {
    const size_t sum = sketch.sum_axis - nest.spatial;
    const auto [o, i] = anchor.split(r.loops[sum], sketch.group);
    r.loops[sum] = o;
    cut.terms = i;
  }
  const size_t k = nest.longest_reduction() - nest.spatial;
  if (plan.k_block > 0 && plan.k_block < r.extents[k]) {
    const auto [o, i] = anchor.split(r.loops[k], plan.k_block);
    r.block = o;
    r.loops[k] = i;
    r.extents[k] = plan.k_block;
  }
  return r;
}

/// The operand of a unit's rows moves with the axis.
bool moves_rows(const TileSketch& sketch, size_t axis) {
  for (const Operand& o : sketch.nest->operands)
    if (!o.moves(sketch.vector_axis) && o.moves(axis)) return true;
  return false;
}

/// The block loops of the plan, and the loops over tiles.
void order_outer_loops(const TileSketch& sketch, const TilePlan& plan,
                       const std::vector<AxisLoops>& axes, const Loop& k_block, CutLoops& cut) {
  const size_t v = sketch.vector_axis;
  for (const BlockLoop& b : cut.block.loops)
    cut.blocks.push_back(sketch.nest->is_reduction(b.axis) ? k_block
                         : is_batch(sketch, b.axis)        ? axes[b.axis].tile
                                                           : axes[b.axis].block);
  std::vector<Loop> beside,
      with;  // the vectors' operand alone moves with the loops of a unit's lanes
  for (size_t n = 0; n < sketch.nest->spatial; ++n)
    if (!is_batch(sketch, n) && n != v)
      (sketch.unit && !moves_rows(sketch, n) ? with : beside).push_back(axes[n].tile);
  with.push_back(axes[v].tile);
  cut.tiles = plan.vector_tiles_first ? with : beside;
  const std::vector<Loop>& inner = plan.vector_tiles_first ? beside : with;
  cut.tiles.insert(cut.tiles.end(), inner.begin(), inner.end());
}

/// .. | tiles of rows, rows, lanes | reductions, the one that tiles add up last, terms
void order_unit_loops(StageSteps& anchor, const TileSketch& sketch,
                      const std::vector<AxisLoops>& axes, Reductions r, std::vector<LoopRef> order,
                      CutLoops& cut) {
  const Loop lanes = axes[sketch.vector_axis].inner, rows = axes[sketch.unit->rows].inner;
  cut.vector = rows;
  if (sketch.unit->tiles && !axes[*sketch.unit->tiles].inner.name.empty()) {
    cut.vector = axes[*sketch.unit->tiles].inner;
    order.push_back(cut.vector);
  }
  order.insert(order.end(), {rows, lanes});
  const auto sum =
      r.loops.begin() + static_cast<std::ptrdiff_t>(sketch.sum_axis - sketch.nest->spatial);
  std::rotate(sum, sum + 1, r.loops.end());
  order.insert(order.end(), r.loops.begin(), r.loops.end());
  order.push_back(cut.terms);
  anchor.reorder(order);
}

/// outer loops | tiles | reductions | steps, inner | vectors | terms
CutLoops cut_loops(Schedule& s, const TileSketch& sketch, const TilePlan& plan) {
  const AnchorNest& nest = *sketch.nest;
  const size_t v = sketch.vector_axis;
  StageSteps anchor = s[nest.stage];
  CutLoops cut;
  cut.block = block_loops_of(sketch, plan);
  std::vector<AxisLoops> axes;
  for (size_t n = 0; n < nest.spatial; ++n)
    axes.push_back(cut_axis(anchor, nest.axes[n], plan.inner[n], plan.pieces[n]));
  const Reductions r = cut_blocks_of_k(anchor, sketch, plan, cut);
  order_outer_loops(sketch, plan, axes, r.block, cut);

  std::vector<LoopRef> order(cut.blocks.begin(), cut.blocks.end());
  order.insert(order.end(), cut.tiles.begin(), cut.tiles.end());
  if (sketch.unit) {
    order_unit_loops(anchor, sketch, axes, r, order, cut);
    return cut;
  }
  cut.vector = axes[v].inner;
  Loop vectors;  // of one element along each row, where the result's rows run elsewhere
  const int64_t lanes = s.target().lanes(nest.dtype);
  if (!vectors_along_rows(sketch) && plan.inner[v] > lanes) {
    const auto [o, i] = anchor.split(cut.vector, lanes);
    vectors = o;
    cut.vector = i;
  }
  cut_reductions(anchor, r.loops, r.extents, plan.steps, order, cut);
  const auto write_out = [&](const Loop& loop) {
    if (loop.name.empty()) return;
    order.push_back(loop);
    cut.unrolled.push_back(loop);
  };
  for (size_t n = 0; n < nest.spatial; ++n)
    if (n != v) write_out(axes[n].inner);
  write_out(vectors);
  order.push_back(cut.vector);
  if (sketch.dots) order.push_back(cut.terms);
  anchor.reorder(order);
  return cut;
}

/// Copies that are made in each call. Returns how many leading loops stay without one inside.
size_t make_copies(Schedule& s, const TileSketch& sketch, const TilePlan& plan, const CutLoops& cut,
                   std::vector<std::string>& done) {
  const AnchorNest& nest = *sketch.nest;
  size_t shared = cut.block.leading;
  for (size_t n = 0; n < nest.operands.size(); ++n) {
    const Operand& o = nest.operands[n];
    if (plan.pack[n] == "no" || plan.pack[n] == "ahead") continue;
    const auto place = copy_block(cut.block, o, plan.pack[n]);
    const Packing p = packing_of(sketch, plan, o, s.target());
    const LoopRef at = place ? LoopRef(cut.blocks[*place]) : LoopRef("root");
    const std::string copy = s[nest.stage].cache_read(o.buffer, at, {.layout = p.layout});
    done.push_back(copy);
    if (place) shared = std::min(shared, *place + 1);
    if (!p.layout.empty())
      finish_copy(s, copy, place ? loops_below(s, copy, cut.blocks[*place]) : s[copy].loops(), p,
                  !place);
    else if (place)
      finish_map_in_loop(s, copy, cut.blocks[*place]);
    else
      schedule_root_map(s, copy, 2);
  }
  return shared;
}

/// The sum in registers, partial sums in memory where k is in blocks, and the maps after it. A unit
/// has registers of its own, which are stored. Adds the stages to `done`.
void place_results(Schedule& s, const TileSketch& sketch, const CutLoops& cut,
                   std::vector<std::string>& done) {
  const AnchorNest& nest = *sketch.nest;
  const Loop tile = cut.tiles.back();
  const bool along_rows = vectors_along_rows(sketch);
  if (!sketch.unit && along_rows && !cut.block.k_in_blocks) {
    const size_t in_tile = place_sum(s, nest.stage, nest.output, tile, done);
    for (size_t n = 1; n < in_tile; ++n) finish_map_in_tile(s, done[n], tile);
    return;
  }
  const CacheWriteStages copies =
      sketch.unit ? CacheWriteStages{} : s[nest.stage].cache_write(tile, {Scope::reg});
  for (const std::string& copy : {copies.load, copies.store}) {
    if (copy.empty()) continue;
    done.push_back(copy);
    if (along_rows)
      finish_map_in_tile(s, copy, tile);
    else
      finish_map_across(s, copy, tile, sketch.vector_axis, s.target().lanes(nest.dtype));
  }
  for (const std::string& stage : fuse_epilogue(s, tile)) {
    done.push_back(stage);
    finish_map_in_loop(s, stage, tile);
  }
}

}  // namespace

void apply_tiles(Schedule& s, const TileSketch& sketch, const TilePlan& plan) {
  const AnchorNest& nest = *sketch.nest;
  if (sketch.unit && !sketch.unit->paddings.empty())
    s[nest.stage].pad_einsum(sketch.unit->paddings);
  const std::vector<std::string> maps_before = roles(s.program()).prologue;
  for (size_t n = 0; n < nest.operands.size(); ++n)
    if (plan.pack[n] == "ahead")
      s.pack(nest.operands[n].buffer, packing_of(sketch, plan, nest.operands[n], s.target()).layout,
             {PackWhen::ahead});
  const CutLoops cut = cut_loops(s, sketch, plan);
  std::vector<std::string> done = {nest.stage};
  place_results(s, sketch, cut, done);
  const size_t shared = make_copies(s, sketch, plan, cut, done);
  // Into the copies, where there are some: then they compute what they hold.
  if (plan.inlined)
    for (const std::string& map : maps_before) s.try_apply(ComputeInline{map});
  for (const Loop& l : cut.unrolled) s[nest.stage].unroll(l);
  if (sketch.dots)
    s[nest.stage].tensorize(cut.vector, *sketch.dots);
  else
    s[nest.stage].vectorize(cut.vector, {Tail::mask});
  std::vector<Loop> outer(cut.blocks.begin(),
                          cut.blocks.begin() + static_cast<std::ptrdiff_t>(shared));
  const bool to_tiles = shared == cut.blocks.size() && !cut.block.k_in_blocks;
  if (to_tiles) outer.insert(outer.end(), cut.tiles.begin(), cut.tiles.end());
  fuse_and_parallel(s, nest.stage, outer);
  schedule_rest(s, done);
}

}  // namespace tenon
