#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "kernels/blocking.h"
#include "kernels/cost.h"
#include "kernels/dot_product.h"
#include "kernels/nests.h"
#include "kernels/register_sum.h"
#include "kernels/templates.h"

namespace tenon {
namespace {

/// Steps between two lines of the next panel that are asked for.
constexpr int64_t kFetchSteps = 4;

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
  b.panels_outside = ahead && knobs.flag("panels_outside", best.panels_outside);
  const int64_t free = registers_free(target);
  knobs.require(
      [free](const Point& p) {
        return registers_used({p.number("rows"), 1, p.number("vectors")}) <= free;
      },
      "the tile needs more vector registers than the target has");
  return b;
}

/// The loops of the product after blocking, from the outside in.
struct BlockedLoops {
  std::vector<Loop> shared;  // batch, pieces of rows, blocks of columns
  Loop block;                // one block of X stays the same inside it; no name: all of X does
  Loop tile;                 // the tile's loop
  Loop panel, k;             // over panels of X, and over k
  Loop rows, vector;         // inside the tile; no name: no rows
};

/// `group`: points of the reduction in one step of the tile, innermost.
BlockedLoops block_loops(Schedule& s, const Contraction& c, const Blocking& b, int64_t group) {
  StageSteps anchor = s[c.stage];
  const int64_t width = b.tile.vectors * s.target().lanes(c.dtype);
  BlockedLoops l;
  Loop columns{c.stage, c.vector.loop}, k{c.stage, c.reduce[0].loop}, row_tiles;
  for (const LoopExtent& batch : c.batch) l.shared.push_back({c.stage, batch.loop});
  for (const LoopExtent& single : c.outer) l.shared.push_back({c.stage, single.loop});
  if (c.extra) l.shared.push_back({c.stage, c.extra->loop});
  if (c.rows) {
    Loop rows{c.stage, c.rows->loop};
    if (b.row_pieces > 1) {
      const int64_t tiles = ceil_div(c.rows->extent, b.tile.rows),
                    piece = ceil_div(tiles, b.row_pieces) * b.tile.rows;
      const auto [o, i] = anchor.split(rows, piece);
      l.shared.push_back(o);
      rows = i;
    }
    const auto [o, i] = anchor.split(rows, b.tile.rows);
    row_tiles = o;
    l.rows = i;
  }
  if (b.panels > 0 && b.panels * width < c.vector.extent) {
    const auto [o, i] = anchor.split(columns, b.panels * width);
    l.shared.push_back(o);
    columns = i;
  }
  if (!l.shared.empty()) l.block = l.shared.back();
  std::vector<LoopRef> order(l.shared.begin(), l.shared.end());
  if (b.k_block > 0 && b.k_block * group < c.reduce[0].extent) {
    const auto [o, i] = anchor.split(k, b.k_block * group);
    order.push_back(o);
    l.block = o;
    k = i;
  }
  const auto [column_tile, lane] = anchor.split(columns, width);
  l.vector = lane;
  Loop terms;
  if (group > 1) {
    const auto [o, i] = anchor.split(k, group);
    k = o;
    terms = i;
  }
  l.panel = column_tile;
  l.k = k;
  l.tile = b.panels_outside && c.rows ? row_tiles : column_tile;
  if (c.rows) order.push_back(b.panels_outside ? column_tile : row_tiles);
  order.insert(order.end(), {l.tile, k});
  if (c.rows) order.push_back(l.rows);
  order.push_back(lane);
  if (group > 1) order.push_back(terms);
  anchor.reorder(order);
  return l;
}

/// Dimensions of X with the vector axis cut into panels: [n/width][..][k][width]; of groups,
/// [n/width][..][k/group][width][group].
std::vector<LayoutDim> panel_layout(const Contraction& c, const std::optional<DotProduct>& dots,
                                    int64_t width) {
  std::vector<LayoutDim> layout;
  const int vector = c.x_order.back();
  const int k = dots ? dots->k_of_x : c.x_order.size() > 1 ? c.x_order[c.x_order.size() - 2] : -1;
  for (int d : c.x_order)
    if (d != vector && d != k) layout.push_back({d, 1, 0});
  layout.push_back({vector, width, 0});
  if (k >= 0) layout.push_back({k, dots ? dots->group : 1, 0});
  layout.push_back({vector, 1, width});
  if (dots) layout.push_back({k, 1, dots->group});
  return layout;
}

/// The copy of X in groups: for each panel, the rows of a group one after the other into the same
/// lines.
void interleave(Schedule& s, const std::string& copy, const std::vector<Loop>& loops,
                const Loop& lanes, const DotProduct& dots, int64_t width) {
  const Loop k = loops[static_cast<size_t>(dots.k_of_x)];
  const auto [group, term] = s[copy].split(k, dots.group);
  const auto [panel, lane] = s[copy].split(lanes, width);
  std::vector<LoopRef> order;
  for (const Loop& l : loops)
    if (l.name != k.name && l.name != lanes.name) order.push_back(l);
  order.insert(order.end(), {group, panel, term, lane});
  s[copy].reorder(order);
  s[copy].unroll(term);
  s[copy].vectorize(lane, {Tail::mask});
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
    interleave(s, copy, loops, lanes, *dots, width);
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

/// Asks for the next panel of X little by little while the rows pass over this one.
void fetch_next_panel(Schedule& s, const Contraction& c, const BlockedLoops& l) {
  const auto [o, i] = s[c.stage].split(l.k, kFetchSteps);
  s[c.stage].unroll(i);
  s.try_apply(Prefetch{c.stage, c.x_buffer, l.panel.name, 1, o.name});
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
  const auto dots = in_dots ? find_dot_product(s.program(), *c, s.target()) : std::nullopt;
  TENON_CHECK(dots || !in_dots, "dot_template on a product that no instruction adds up");
  const int64_t group = dots ? dots->group : 1;
  const Blocking b = choose(in_groups(*c, group), s.target(), ahead, knobs);
  const int64_t width = b.tile.vectors * s.target().lanes(c->dtype);

  if (ahead) s.pack(c->x_buffer, panel_layout(*c, dots, width), {PackWhen::ahead});
  const BlockedLoops l = block_loops(s, *c, b, group);
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
  if (b.panels_outside) fetch_next_panel(s, *c, l);
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
