#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <set>

#include "kernels/contraction.h"
#include "kernels/templates.h"
#include "kernels/window_tile.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/register_sum.h"

namespace tenon {
namespace {

/// What the knobs said.
struct TileChoice {
  RegisterTile tile;
  bool rows_outside = false;  // the loop over row tiles stands outside of that over vector tiles
  bool pack_x = false;
  bool unroll_taps = false;
  bool inlined = false;  // the maps before the sum become a part of it
};

/// Packing copies each element of X once for all rows: it pays when rows are many or X is not
/// contiguous.
bool packing_pays(const Contraction& c, const RegisterTile& tile) {
  if (c.x_buffer.empty() || !c.rows) return false;
  if (!c.x_contiguous) return c.rows->extent >= 4;
  const auto bytes =
      static_cast<double>(points_in(c.reduce) * c.vector.extent * byte_size(c.dtype));
  return c.rows->extent >= 12 * tile.rows && bytes > 1e6;
}

int64_t taps(const Contraction& c) {
  int64_t count = 1;
  for (size_t n = c.reduce.size(); n-- > 0 && c.reduce[n].extent <= 7;) count *= c.reduce[n].extent;
  return count;
}

TileChoice choose(const Contraction& c, const Target& target, Knobs& knobs) {
  const RegisterTile best = best_tile(c, target);
  const int64_t lanes = target.lanes(c.dtype), width = ceil_div(c.vector.extent, lanes);
  const int64_t most_rows =
      c.rows ? std::min<int64_t>(c.rows_group > 0 ? c.rows_group : c.rows->extent, 30) : 1;
  TileChoice choice;
  choice.tile.rows = knobs.pick(
      "rows", ladder(most_rows, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24}, best.rows),
      best.rows);
  choice.tile.extra = knobs.pick("extra",
                                 ladder(c.extra ? std::min<int64_t>(c.extra->extent, 8) : 1,
                                        {1, 2, 3, 4, 6, 7, 8}, best.extra),
                                 best.extra);
  choice.tile.vectors = knobs.pick(
      "vectors",
      ladder(std::min<int64_t>(width, 16), {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}, best.vectors),
      best.vectors);
  choice.rows_outside = knobs.flag("rows_outside", false);
  choice.pack_x = knobs.flag("pack_x", packing_pays(c, best));
  choice.unroll_taps = knobs.flag("unroll_taps", !c.rows && taps(c) > 1 && taps(c) <= 25);
  const int64_t free = registers_free(target), group = c.rows_group;
  knobs.require(
      [free](const Point& p) {
        return registers_used({p.number("rows"), p.number("extra"), p.number("vectors")}) <= free;
      },
      "the tile needs more vector registers than the target has");
  knobs.require([group](const Point& p) { return group == 0 || group % p.number("rows") == 0; },
                "a tile of rows must not cross a group");
  const bool packable = !c.x_buffer.empty();
  knobs.require([packable](const Point& p) { return p.number("pack_x") == 0 || packable; },
                "X is no plain element of a buffer");
  return choice;
}

/// A border of a constant round elements that stay in their order.
bool only_pads(const Stage& stage) {
  const Select* s = stage.values[0].as<Select>();
  const Load* inside = s ? s->yes.as<Load>() : nullptr;
  const Expr* border = s ? &without_casts(s->no) : nullptr;
  if (!inside || !(border->as<FloatImm>() || border->as<IntImm>())) return false;
  if (inside->indices.size() != stage.axes.size()) return false;
  for (size_t d = 0; d < stage.axes.size(); ++d)
    if (step_along(inside->indices[d], stage.axes[d].axis.var) != 1) return false;
  return true;
}

/// The maps before the sum, of which there are some, only give it a border.
bool has_border(const Program& program, const std::vector<std::string>& maps) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  return !maps.empty() && std::all_of(paths.begin(), paths.end(), [&](const StagePath& path) {
    return std::find(maps.begin(), maps.end(), path.stage->name) == maps.end() ||
           only_pads(*path.stage);
  });
}

/// Rows of windows that share what they read.
TileChoice choose_windows(const Contraction& c, const Program& program, const Target& target,
                          Knobs& knobs) {
  const std::vector<std::string> maps = roles(program).prologue;
  const bool padded = has_border(program, maps);
  const WindowTile best = best_window_tile(c, padded, target);
  const int64_t most_vectors =
      std::min<int64_t>(ceil_div(c.vector.extent, target.lanes(c.dtype)), 16);
  TileChoice choice;
  choice.tile.extra = knobs.pick("extra",
                                 ladder(std::min(c.extra->extent, kMostWindowRows),
                                        {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14}, best.tile.extra),
                                 best.tile.extra);
  choice.tile.vectors = knobs.pick(
      "vectors", ladder(most_vectors, {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}, best.tile.vectors),
      best.tile.vectors);
  choice.unroll_taps = knobs.flag("unroll_taps", true);
  if (padded) choice.inlined = knobs.flag("inline", best.inlined);
  const int64_t free = registers_free(target);
  knobs.require(
      [free](const Point& p) {
        return window_registers(p.number("extra"), p.number("vectors")) <= free;
      },
      "the tile needs more vector registers than the target has");
  return choice;
}

/// The loops of the anchor after tiling.
struct TiledLoops {
  std::vector<Loop>
      outer;  // batch, outer and tile loops, from the outside in; the last is the tile's
  std::vector<Loop> reduce, unrolled;
  Loop vector_tiles, vector;
};

/// batch.. outer.. e  v  r | k..   ->   batch.. outer.. e.o v.o r.o | k.. e.i r.i v.i
TiledLoops split_and_reorder(Schedule& s, const Contraction& c, const TileChoice& choice,
                             bool rows_outside) {
  StageSteps anchor = s[c.stage];
  TiledLoops t;
  std::vector<Loop> rows_outer;
  for (const LoopExtent& l : c.batch) t.outer.push_back({c.stage, l.loop});
  for (const LoopExtent& l : c.outer) t.outer.push_back({c.stage, l.loop});
  for (const LoopExtent& l : c.reduce) t.reduce.push_back({c.stage, l.loop});
  if (c.windows) {  // taps that share rows follow each other
    const auto taps = t.reduce.begin() + static_cast<std::ptrdiff_t>(c.windows->taps);
    std::rotate(taps, taps + 1, t.reduce.end());
  }
  std::vector<Loop> inner;
  if (c.extra) {
    const auto [o, i] = anchor.split(c.extra->loop, choice.tile.extra);
    t.outer.push_back(o);
    inner.push_back(i);
  }
  const auto [vo, vi] =
      anchor.split(c.vector.loop, choice.tile.vectors * s.target().lanes(c.dtype));
  t.vector_tiles = vo;
  t.vector = vi;
  t.outer.push_back(vo);
  if (c.rows) {
    const auto [ro, ri] = anchor.split(c.rows->loop, choice.tile.rows);
    inner.push_back(ri);
    if (rows_outside)
      t.outer.insert(t.outer.begin() + static_cast<std::ptrdiff_t>(c.batch.size()), ro);
    else
      t.outer.push_back(ro);
  }
  std::vector<LoopRef> order(t.outer.begin(), t.outer.end());
  order.insert(order.end(), t.reduce.begin(), t.reduce.end());
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(vi);
  anchor.reorder(order);
  t.unrolled = inner;
  return t;
}

/// The maps that feed the anchor directly stay stages of their own; what feeds only them is inlined
/// into them.
void inline_before_producers(Schedule& s, const std::string& anchor) {
  std::set<std::string> direct;  // buffers
  std::vector<std::string> inlined;
  const std::vector<std::string> prologue = roles(s.program()).prologue;
  const std::vector<StagePath> paths = stage_paths(s.program().body);
  for (const StagePath& path : paths)
    if (path.stage->name == anchor)
      for (const Expr& value : path.stage->values)
        walk(value, [&](const Expr& e) {
          if (auto* l = e.as<Load>()) direct.insert(l->buffer->name);
          return true;
        });
  for (const StagePath& path : paths)
    if (std::find(prologue.begin(), prologue.end(), path.stage->name) != prologue.end() &&
        !direct.count(path.stage->outputs[0]->name))
      inlined.push_back(path.stage->name);
  for (const std::string& name : inlined) s.try_apply(ComputeInline{name});
}

bool rows_should_be_parallel(const Contraction& c, const TileChoice& choice, const Target& target) {
  if (!c.rows) return false;
  const int64_t lanes = target.lanes(c.dtype), width = choice.tile.vectors * lanes;
  const double others = static_cast<double>(points_in(c.batch) * points_in(c.outer)) *
                        static_cast<double>(ceil_div(extent_of(c.extra), choice.tile.extra) *
                                            ceil_div(c.vector.extent, width));
  return balance(static_cast<int64_t>(others), target.cores) + 0.05 <
         balance(ceil_div(c.rows->extent, choice.tile.rows), target.cores);
}

/// The part of X under one loop over vector tiles as a copy of its own, in the order the tile reads
/// it.
void pack_x(Schedule& s, const Contraction& c, const Loop& vector_tiles,
            std::vector<std::string>& done) {
  CacheReadOptions options;
  if (!std::is_sorted(c.x_order.begin(), c.x_order.end()))
    for (int d : c.x_order) options.layout.push_back({d, 1, 0});
  const std::string copy = s[c.stage].cache_read(c.x_buffer, vector_tiles, options);
  done.push_back(copy);
  std::vector<Loop> loops = loops_below(s, copy, vector_tiles);
  std::vector<LoopRef> order;
  for (int d : c.x_order) order.push_back(loops[static_cast<size_t>(d)]);
  s[copy].reorder(order).vectorize(order.back(), {Tail::mask});
}

/// Stages that feed the anchor are computed for each iteration of a loop that shares nothing with
/// the others.
void compute_producers_at(Schedule& s, const std::string& anchor, const Loop& loop,
                          std::vector<std::string>& done) {
  const std::vector<std::string> producers = roles(s.program()).prologue;
  for (size_t n = producers.size(); n-- > 0;) {
    if (s.try_apply(ComputeAt{producers[n], anchor, loop.name})) continue;
    done.push_back(producers[n]);
    finish_map_in_loop(s, producers[n], loop);
  }
}

/// The innermost reductions are written out while the code stays small.
void unroll_taps(Schedule& s, const Contraction& c, const TileChoice& choice, const TiledLoops& t) {
  int64_t code = c.windows ? choice.tile.extra * choice.tile.vectors : 1;
  for (size_t n = t.reduce.size(); n-- > 0;) {
    const int64_t extent = loop_extent(s, t.reduce[n]);
    code *= extent;
    if (c.windows ? code > kMostWindowCode : extent > 7) break;
    s.try_apply(Unroll{c.stage, t.reduce[n].name});  // too many copies: the loop stays
  }
}

/// Each tile at the border has code of its own, so that masks are constant and others have none.
void cut_border(Schedule& s, const Contraction& c, const TiledLoops& t) {
  for (size_t n = c.batch.size() + c.outer.size(); n < t.outer.size(); ++n)
    s.try_apply(Partition{c.stage, t.outer[n].name});
}

}  // namespace

void tile_template(Schedule& s, Knobs& knobs) {
  const std::string anchor = roles(s.program()).anchor;
  const auto c = find_contraction(s.program(), anchor);
  TENON_CHECK(c, "tile_template on a program without a sum of products");
  const TileChoice choice = c->windows ? choose_windows(*c, s.program(), s.target(), knobs)
                                       : choose(*c, s.target(), knobs);

  if (choice.inlined)
    inline_prologue(s);
  else
    inline_before_producers(s, anchor);
  const bool rows_outside = choice.rows_outside || rows_should_be_parallel(*c, choice, s.target());
  const TiledLoops t = split_and_reorder(s, *c, choice, rows_outside);
  const Loop tile_loop = t.outer.back();

  std::vector<std::string> done = {anchor};
  const size_t in_tile = place_sum(s, c->stage, c->output, tile_loop, done);

  if (choice.pack_x) pack_x(s, *c, t.vector_tiles, done);
  for (const Loop& l : t.unrolled) s[anchor].unroll(l);
  if (choice.unroll_taps) unroll_taps(s, *c, choice, t);
  s[anchor].vectorize(t.vector, {Tail::mask});
  for (size_t n = 1; n < in_tile; ++n) finish_map_in_tile(s, done[n], tile_loop);
  if (choice.inlined) cut_border(s, *c, t);
  const Loop parallel = fuse_and_parallel(s, anchor, t.outer);
  if (!c->rows) compute_producers_at(s, anchor, parallel, done);
  schedule_rest(s, done);
}

}  // namespace tenon
