#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "kernels/blocked_loops.h"
#include "kernels/templates.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/register_sum.h"

namespace tenon {
namespace {

Blocking choose(const Contraction& c, const Target& target, bool ahead, Knobs& knobs) {
  const Blocking best = best_blocking(c, target, ahead);
  const int64_t width = ceil_div(c.vector.extent, target.lanes(c.dtype));
  Blocking b;
  b.tile.rows =
      knobs.pick("rows",
                 ladder(extent_of(c.rows), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24},
                        best.tile.rows),
                 best.tile.rows);
  b.tile.vectors = knobs.pick(
      "vectors", ladder(width, {1, 2, 3, 4, 5, 6, 8, 12}, best.tile.vectors), best.tile.vectors);
  b.k_block = knobs.pick(
      "k_block",
      ladder(c.reduce[0].extent - 1, {0, 16, 32, 64, 128, 256, 384, 512, 768, 1024}, best.k_block),
      best.k_block);
  b.panels =
      knobs.pick("panels", ladder(width, {0, 1, 2, 4, 6, 8, 12, 16, 32}, best.panels), best.panels);
  b.row_pieces = knobs.pick(
      "row_pieces", ladder(extent_of(c.rows), {1, 2, 4, 8, 16}, best.row_pieces), best.row_pieces);
  b.packed = !ahead && (c.in_panels || knobs.flag("pack", best.packed));
  b.panels_outside = (ahead || !c.in_panels) && knobs.flag("panels_outside", best.panels_outside);
  if (!ahead && !c.in_panels)
    knobs.require(
        [](const Point& p) { return p.number("panels_outside") == 0 || p.number("pack") == 0; },
        "a copy of X is not read in place, panel by panel");
  const int64_t free = registers_free(target);
  knobs.require(
      [free](const Point& p) {
        return registers_used({p.number("rows"), 1, p.number("vectors")}) <= free;
      },
      "the tile needs more vector registers than the target has");
  return b;
}

/// A copy of the block of X in panels, made in the order in which X lies in memory.
std::string pack_block(Schedule& s, const Contraction& c, const std::optional<DotProduct>& dots,
                       const BlockedLoops& l, int64_t width) {
  const LoopRef at = l.block.name.empty() ? LoopRef("root") : LoopRef(l.block);
  const std::string copy =
      s[c.stage].cache_read(c.x_buffer, at, {.layout = panel_layout(c, dots, width)});
  std::vector<Loop> loops = l.block.name.empty() ? s[copy].loops() : loops_below(s, copy, l.block);
  const Loop lanes = loops[static_cast<size_t>(c.x_order.back())];
  if (dots) {
    interleave(s, copy, loops, c, *dots, width);
  } else {
    if (!c.x_contiguous) {
      std::vector<LoopRef> order;
      for (int d : c.x_order) order.push_back(loops[static_cast<size_t>(d)]);
      s[copy].reorder(order);
    }
    const auto [panel, lane] = s[copy].split(lanes, width);
    s[copy].vectorize(lane, {Tail::mask});
  }
  if (l.block.name.empty()) fuse_and_parallel(s, copy, {s[copy].loops()[0]});
  return copy;
}

/// for k   ->   for k.o: for k.i in 0..steps unroll; gives k.o.
Loop write_out_steps(Schedule& s, const Contraction& c, const Loop& k, int64_t steps) {
  if (steps == 1) return k;
  const auto [o, i] = s[c.stage].split(k, steps);
  s[c.stage].unroll(i);
  return o;
}

/// A copy of W whose neighbours run along the reduction.
std::string turn_rows(Schedule& s, const Contraction& c, const DotProduct& dots) {
  std::vector<LayoutDim> layout;
  for (int d : dots.w_order) layout.push_back({d, 1, 0});
  const std::string copy = s[c.stage].cache_read(dots.w_buffer, "root", {.layout = layout});
  fuse_and_parallel(s, copy, {s[copy].loops()[0]});
  return copy;
}

void product_template(Schedule& s, Knobs& knobs, bool in_dots) {
  const std::string anchor = roles(s.program()).anchor;
  const auto c = find_contraction(s.program(), anchor);
  TENON_CHECK(c && is_matrix_product(*c), "a template of products on a program that is none");
  const bool ahead = is_constant(s.program(), c->x_buffer);
  inline_prologue(s);
  const auto dots =
      in_dots ? find_dot_product(s.program(), *c, s.target(), DotUnit::lanes) : std::nullopt;
  TENON_CHECK(dots || !in_dots, "dot_template on a product that no instruction adds up");
  const int64_t group = dots ? dots->group : 1;
  const Blocking b = choose(in_groups(*c, group, dots ? dots->cost : 1), s.target(), ahead, knobs);
  const int64_t width = b.tile.vectors * s.target().lanes(c->dtype);
  const int64_t most = c->reduce[0].extent / group / 2, few = most >= kSteps ? kSteps : 1;
  const int64_t steps = knobs.pick("steps", ladder(most, {1, 2, 4, 8}, few), few);

  if (ahead) s.pack(c->x_buffer, panel_layout(*c, dots, width), {PackWhen::ahead});
  const BlockedLoops l = block_loops(s, *c, b, {s.target().lanes(c->dtype), group});
  std::vector<std::string> done = {anchor};
  const bool in_blocks = b.k_block > 0 && b.k_block * group < c->reduce[0].extent;
  size_t in_tile;
  if (in_blocks) {
    const CacheWriteStages copies = s[anchor].cache_write(l.tile, {Scope::reg});
    done.insert(done.end(), {copies.load, copies.store});
    in_tile = done.size();
    for (const std::string& stage : fuse_epilogue(s, l.tile)) {
      done.push_back(stage);
      finish_map_in_loop(s, stage, l.tile);
    }
  } else {
    in_tile = place_sum(s, anchor, c->output, l.tile, done);
  }
  if (b.packed) done.push_back(pack_block(s, *c, dots, l, width));
  if (dots && !dots->w_in_order) done.push_back(turn_rows(s, *c, *dots));
  const Loop k = write_out_steps(s, *c, l.k, steps);
  // The next panel or piece of X's rows is asked for little by little while the rows of tiles pass
  // over this one.
  if (b.panels_outside) s.try_apply(Prefetch{anchor, c->x_buffer, l.panel.name, 1, k.name});
  if (c->rows) s[anchor].unroll(l.rows);
  if (dots)
    s[anchor].tensorize(l.vector, dots->intrinsic);
  else
    s[anchor].vectorize(l.vector, {Tail::mask});
  for (size_t n = 1; n < in_tile; ++n) finish_map_in_tile(s, done[n], l.tile);
  if (!l.shared.empty()) fuse_and_parallel(s, anchor, l.shared);
  schedule_rest(s, done);
}

}  // namespace

void matmul_template(Schedule& s, Knobs& knobs) { product_template(s, knobs, false); }
void dot_template(Schedule& s, Knobs& knobs) { product_template(s, knobs, true); }

}  // namespace tenon
