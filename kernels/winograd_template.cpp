#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "kernels/templates.h"
#include "kernels/winograd_parts.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/register_sum.h"

namespace tenon {
namespace {

constexpr int64_t kLineBytes = 64;
/// A tile that is transformed is code without loops up to so many vectors.
constexpr int64_t kMostVectors = 96;

WinogradBlocking choose(const WinogradParts& w, const Target& target, Knobs& knobs) {
  const WinogradBlocking best = best_winograd_blocking(w, target);
  const BlockedConv& c = w.products;
  const int64_t free = conv_registers_free(target);
  WinogradBlocking b;
  b.rows =
      knobs.pick("rows", ladder(extent_of(c.rows), {1, 2, 3, 4, 7, 8, 14}, best.rows), best.rows);
  b.columns = knobs.pick(
      "columns", ladder(c.columns->extent, {1, 2, 4, 7, 8, 14, 28}, best.columns), best.columns);
  b.tile.rows = knobs.pick(
      "tile_rows", ladder(std::min(extent_of(c.rows), free), {1, 2, 3, 4, 7}, best.tile.rows),
      best.tile.rows);
  b.tile.columns = knobs.pick("tile_columns",
                              ladder(std::min(c.columns->extent, free),
                                     {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14}, best.tile.columns),
                              best.tile.columns);
  b.tile.blocks = knobs.pick("blocks", ladder(c.blocks->extent, {1, 2, 3, 4, 6}, best.tile.blocks),
                             best.tile.blocks);
  b.group =
      knobs.pick("group", ladder(c.blocks->extent, {1, 2, 4, 8, 16, 32}, best.group), best.group);
  b.k_blocks = knobs.pick("k_blocks", {0, 4, 8, 16, 32}, best.k_blocks);
  b.unroll = knobs.pick("unroll", {1, 2, 4, 8, 16}, best.unroll);
  b.shared_input = knobs.flag("shared_input", best.shared_input);
  knobs.require(
      [c, target, free](const Point& p) {
        const ConvTile tile{p.number("tile_rows"), p.number("tile_columns"), p.number("blocks")};
        return registers_used(c, tile, target) <= free;
      },
      "the tile needs more vector registers than the target has");
  knobs.require(
      [w](const Point& p) {
        return tiles_fit(
            {.rows = p.number("rows"),
             .columns = p.number("columns"),
             .tile = {p.number("tile_rows"), p.number("tile_columns"), p.number("blocks")},
             .group = p.number("group")},
            w);
      },
      "register tiles do not fill the blocks, nor blocks the image");
  return b;
}

/// The result's loops:  n oh.o ow.o | ob.o | ob.i oh.i.o ow.i.o | oh.i.i ow.i.i o
struct ResultLoops {
  std::vector<Loop> blocks;  // blocks of tiles, from the outside in
  Loop group;                // of channel blocks
  Loop tile;                 // one tile's loop
  std::vector<Loop> pixels;  // inside it
};

ResultLoops cut_result(Schedule& s, const WinogradParts& w, const WinogradBlocking& b) {
  StageSteps y = s[w.result];
  std::vector<Loop> loops = y.loops();
  const size_t lane = loops.size() - 1;
  ResultLoops r;
  for (size_t n = 0; n + 3 < lane; ++n) r.blocks.push_back(loops[n]);
  const auto [group, block] = y.split(loops[lane - 3], b.group);
  const auto [row_block, rows] = y.split(loops[lane - 2], b.rows * w.m);
  const auto [row, p] = y.split(rows, w.m);
  const auto [column_block, columns] = y.split(loops[lane - 1], b.columns * w.m);
  const auto [column, q] = y.split(columns, w.m);
  r.blocks.insert(r.blocks.end(), {row_block, column_block});
  r.group = group;
  r.tile = column;
  r.pixels = {p, q, loops[lane]};
  std::vector<LoopRef> order(r.blocks.begin(), r.blocks.end());
  order.insert(order.end(), {group, block, row, column, p, q, loops[lane]});
  y.reorder(order);
  return r;
}

/// Unrolls all loops but the last, which becomes vectors.
void write_out(Schedule& s, const std::string& stage, const std::vector<Loop>& loops) {
  for (size_t n = 0; n + 1 < loops.size(); ++n) s[stage].unroll(loops[n]);
  s[stage].vectorize(loops.back());
}

/// The products of one group in register tiles:  a b n | th.o tw.o | ib i.o | i.i th.i tw.i ob o
void tile_products(Schedule& s, const BlockedConv& c, const WinogradBlocking& b, const Loop& group,
                   std::vector<std::string>& done) {
  StageSteps m = s[c.stage];
  const std::vector<Loop> before = m.loops();
  m.compute_at(group);
  const std::vector<Loop> now = loops_below(s, c.stage, group);
  const auto loop = [&](const LoopExtent& l) {
    const auto at = std::find(before.begin(), before.end(), Loop{c.stage, l.loop});
    return now[static_cast<size_t>(at - before.begin())];
  };
  std::vector<LoopRef> order;
  for (const LoopExtent& l : c.batch) order.push_back(loop(l));
  std::vector<Loop> steps;  // of the sum, outside the tile's code
  for (size_t n = 0; n + 1 < c.reduce.size(); ++n) steps.push_back(loop(c.reduce[n]));
  if (b.k_blocks > 0 && !steps.empty()) {
    const auto [o, i] = m.split(steps[0], b.k_blocks);
    order.push_back(o);
    steps[0] = i;
  }
  const auto [blocks, block] = m.split(loop(*c.blocks), b.tile.blocks);
  order.push_back(blocks);
  std::vector<Loop> inner;
  if (c.rows) {
    const auto [o, i] = m.split(loop(*c.rows), b.tile.rows);
    order.push_back(o);
    inner.push_back(i);
  }
  const auto [tile, column] = m.split(loop(*c.columns), b.tile.columns);
  order.push_back(tile);
  inner.insert(inner.end(), {column, block});
  order.insert(order.end(), steps.begin(), steps.end());
  if (!c.reduce.empty()) {
    const auto [step, written] = m.split(loop(c.reduce.back()), b.unroll);
    order.push_back(step);
    inner.insert(inner.begin(), written);
  }
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(loop(c.lane));
  m.reorder(order);
  const CacheWriteStages copies = m.cache_write(tile, {Scope::reg});
  for (const std::string& copy : {copies.load, copies.store}) {
    if (copy.empty()) continue;
    done.push_back(copy);
    finish_map_in_tile(s, copy, tile);
  }
  for (const Loop& l : inner) m.unroll(l);
  m.vectorize(loop(c.lane));
}

/// The half transformed tile, rows of it done, in registers where they and the code suffice.
void keep_tile(Schedule& s, const WinogradParts& w, const std::string& stage) {
  const BlockedConv& c = w.products;
  const int64_t vectors = c.lane.extent / s.target().lanes(c.dtype);
  if ((w.m + 2) * (w.m + 2) * vectors <= kMostVectors) s[stage].set_scope(stage, Scope::reg);
}

/// The input's transform, a tile at a time:  n ib th tw | rows in registers | a b i
void transform_input(Schedule& s, const WinogradParts& w, const LoopRef& at) {
  StageSteps v = s[w.input];
  std::vector<Loop> loops = v.loops();
  if (at.name != "root") {
    v.compute_at(at);
    loops = loops_below(s, w.input, {w.result, at.name});
  }
  const size_t lane = loops.size() - 1;
  std::vector<LoopRef> order(loops.begin() + 2, loops.begin() + static_cast<std::ptrdiff_t>(lane));
  order.insert(order.end(), {loops[0], loops[1], loops[lane]});
  v.reorder(order);
  const Loop tile = loops[lane - 1];
  s[w.rows].compute_at(tile);
  keep_tile(s, w, w.rows);
  write_out(s, w.rows, loops_below(s, w.rows, tile));
  write_out(s, w.input, {loops[0], loops[1], loops[lane]});
  if (at.name == "root")
    fuse_and_parallel(
        s, w.input,
        std::vector<Loop>(loops.begin() + 2, loops.begin() + static_cast<std::ptrdiff_t>(lane)));
}

/// The pixels of a tile and the maps after them, on registers where they can be.
void finish_result(Schedule& s, const WinogradParts& w, const ResultLoops& r,
                   std::vector<std::string>& done) {
  std::vector<std::string> placed = {w.result};
  size_t in_tile = 1;
  if (s.stages().back() != w.result)
    in_tile = place_sum(s, w.result, w.result_buffer, r.tile, placed);
  write_out(s, w.result, r.pixels);
  for (size_t n = 1; n < in_tile; ++n) finish_map_in_tile(s, placed[n], r.tile);
  done.insert(done.end(), placed.begin() + 1, placed.end());
}

/// The (m + 2)^2 vectors of a tile lie apart by an odd number of lines: in different sets of the
/// first cache.
void spread_sets(Schedule& s, const std::string& buffer, DType dtype) {
  const int64_t line = kLineBytes / byte_size(dtype);
  s.apply(StorageAlign{buffer, 1, 2 * line, line});
}

}  // namespace

void winograd_template(Schedule& s, Knobs& knobs) {
  const auto w = find_winograd(s.program(), s.target());
  TENON_CHECK(w, "winograd_template on a program without Winograd's convolution");
  const WinogradBlocking b = choose(*w, s.target(), knobs);
  const BlockedConv& c = w->products;

  const bool ahead = is_constant(s.program(), c.w_buffer);
  s.pack(c.w_buffer, c.w_layout, {ahead ? PackWhen::ahead : PackWhen::run_time});
  const ResultLoops r = cut_result(s, *w, b);
  std::vector<std::string> done = {w->result, w->pixels, c.stage, w->input, w->rows};
  s[w->pixels].compute_at(r.tile);
  keep_tile(s, *w, w->pixels);
  write_out(s, w->pixels, loops_below(s, w->pixels, r.tile));
  tile_products(s, c, b, r.group, done);
  transform_input(s, *w, b.shared_input ? LoopRef("root") : LoopRef(r.blocks.back()));
  finish_result(s, *w, r, done);
  spread_sets(s, c.x_buffer, c.dtype);
  spread_sets(s, c.output, c.dtype);
  std::vector<Loop> shared = r.blocks;
  if (b.shared_input) shared.push_back(r.group);
  fuse_and_parallel(s, w->result, shared);
  schedule_rest(s, done);
}

}  // namespace tenon
