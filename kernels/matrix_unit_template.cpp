#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "ir/tile_nest.h"
#include "kernels/blocked_loops.h"
#include "kernels/templates.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"

namespace tenon {
namespace {

/// A product on tiles: what it is made of, as its program stands.
struct TiledProduct {
  Contraction c;
  DotProduct dots;
  IntrinsicParts parts;
};

TiledProduct find_product(const Schedule& s, const std::string& anchor) {
  const auto c = find_contraction(s.program(), anchor);
  TENON_CHECK(c && is_matrix_product(*c), "a template of products on a program that is none");
  const auto dots = find_dot_product(s.program(), *c, s.target(), DotUnit::tiles);
  TENON_CHECK(dots, "matrix_unit_template on a product that no matrix unit has");
  return {*c, *dots, parts_of(*dots->intrinsic)};
}

/// Lanes and steps to whole tiles, where they are not.
void pad_to_tiles(Schedule& s, const TiledProduct& p) {
  const int64_t step = p.parts.steps * p.parts.group;
  std::vector<int64_t> paddings;
  bool grows = false;
  for (const StagePath& path : stage_paths(s.program().body)) {
    if (path.stage->name != p.c.stage) continue;
    const ConstantNest nest = constant_nest(path).value();
    for (const LoopExtent& l : nest.loops) {
      const int64_t to = l.loop == p.c.vector.loop      ? p.parts.lanes
                         : l.loop == p.c.reduce[0].loop ? step
                                                        : 1;
      paddings.push_back(to);
      grows = grows || l.extent % to != 0;
    }
  }
  if (grows) s[p.c.stage].pad_einsum(paddings);
}

bool is_parameter(const Program& program, const std::string& buffer) {
  return std::any_of(program.params.begin(), program.params.end(),
                     [&](const Param& p) { return p.buffer->name == buffer; });
}

/// `buffer` in that layout: the copy that pads it, or one of its own. Returns the copy's stage.
std::string copy_in(Schedule& s, const std::string& buffer, const std::vector<LayoutDim>& layout) {
  if (is_parameter(s.program(), buffer)) return s.pack(buffer, layout);
  s.pack(buffer, layout);
  return buffer;
}

/// X in panels: ahead, or in a copy of all of it that the cores share.
void place_x(Schedule& s, const TiledProduct& p, int64_t width, std::vector<std::string>& done) {
  const std::vector<LayoutDim> panels = panel_layout(p.c, p.dots, width);
  if (is_constant(s.program(), p.c.x_buffer)) {
    s.pack(p.c.x_buffer, panels, {PackWhen::ahead});
    return;
  }
  const std::string copy = copy_in(s, p.c.x_buffer, panels);
  interleave(s, copy, s[copy].loops(), p.c, p.dots, width);
  fuse_and_parallel(s, copy, {s[copy].loops()[0], s[copy].loops()[1]});
  done.push_back(copy);
}

/// X's block in panels, copied where it is used: it is still in the caches then.
void copy_block(Schedule& s, const TiledProduct& p, const Loop& at, int64_t width,
                std::vector<std::string>& done) {
  const std::string copy =
      s[p.c.stage].cache_read(p.c.x_buffer, at, {.layout = panel_layout(p.c, p.dots, width)});
  interleave(s, copy, loops_below(s, copy, at), p.c, p.dots, width);
  done.push_back(copy);
}

/// W with neighbours along the reduction.
void place_w(Schedule& s, const TiledProduct& p, std::vector<std::string>& done) {
  if (p.dots.w_in_order) return;
  std::vector<LayoutDim> rows;
  for (int d : p.dots.w_order) rows.push_back({d, 1, 0});
  const std::string copy = copy_in(s, p.dots.w_buffer, rows);
  fuse_and_parallel(s, copy, {s[copy].loops()[0]});
  done.push_back(copy);
}

Blocking choose(const TiledProduct& p, const Target& target, bool ahead, Knobs& knobs) {
  const int64_t side = p.parts.rows;
  const Contraction c = in_groups(p.c, p.parts.group);
  const Blocking best = tile_blocking(c, target, side, ahead);
  const int64_t row_tiles = ceil_div(extent_of(c.rows), side),
                column_tiles = ceil_div(c.vector.extent, side);
  Blocking b;
  b.tile.rows = side * knobs.pick("row_tiles", ladder(row_tiles, {1, 2, 3}, best.tile.rows / side),
                                  best.tile.rows / side);
  b.tile.vectors = knobs.pick("column_tiles", ladder(column_tiles, {1, 2, 3, 4}, best.tile.vectors),
                              best.tile.vectors);
  b.panels =
      knobs.pick("panels", ladder(column_tiles, {0, 1, 2, 4, 8, 16, 32}, best.panels), best.panels);
  b.row_pieces =
      knobs.pick("row_pieces", ladder(row_tiles, {1, 2, 4, 8}, best.row_pieces), best.row_pieces);
  b.panels_outside = knobs.flag("panels_outside", best.panels_outside);
  knobs.require(
      [](const Point& q) { return tiles_fit(q.number("row_tiles"), q.number("column_tiles")); },
      "more tiles of sums than the unit has beside the operands'");
  return b;
}

}  // namespace

void matrix_unit_template(Schedule& s, Knobs& knobs) {
  const std::string anchor = roles(s.program()).anchor;
  inline_prologue(s);
  const TiledProduct found = find_product(s, anchor);
  const bool ahead = is_constant(s.program(), found.c.x_buffer);
  const Blocking b = choose(found, s.target(), ahead, knobs);
  pad_to_tiles(s, found);
  const TiledProduct p = find_product(s, anchor);
  const int64_t width = b.tile.vectors * p.parts.lanes;
  std::vector<std::string> done = {anchor};
  const BlockedLoops l =
      block_loops(s, p.c, b, {p.parts.lanes, p.parts.group, /*sums_outside=*/true});
  // Copies that pad, that are made ahead or that several pieces of rows read are made first.
  const Loop at = b.panels_outside && p.c.rows ? l.panel : l.block;
  const bool in_block = b.row_pieces == 1 && !at.name.empty() &&
                        is_parameter(s.program(), p.c.x_buffer) &&
                        !is_constant(s.program(), p.c.x_buffer);
  if (in_block)
    copy_block(s, p, at, width, done);
  else
    place_x(s, p, width, done);
  place_w(s, p, done);
  for (const std::string& stage : fuse_epilogue(s, l.tile)) {
    done.push_back(stage);
    finish_map_in_loop(s, stage, l.tile);
  }
  s[anchor].tensorize(l.rows, p.dots.intrinsic);
  if (!l.shared.empty()) fuse_and_parallel(s, anchor, l.shared);
  schedule_rest(s, done);
}

}  // namespace tenon
