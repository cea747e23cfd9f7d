#include <tenon/support/error.h>

#include <algorithm>

#include "kernels/fused_products.h"
#include "kernels/templates.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/register_sum.h"

namespace tenon {
namespace {

FusedTiles choose(const FusedProducts& f, const Target& target, Knobs& knobs) {
  const FusedTiles best = best_tiles(f, target);
  const int64_t lanes = target.lanes(f.second.dtype), rows = f.second.rows->extent;
  const auto vectors_of = [&](int64_t extent) { return ceil_div(extent, lanes); };
  FusedTiles t;
  t.rows_in_lanes = knobs.flag("rows_in_lanes", best.rows_in_lanes);
  t.vectors = knobs.pick(
      "vectors",
      ladder(vectors_of(std::max(rows, f.first.vector.extent)), {1, 2, 3, 4}, best.vectors),
      best.vectors);
  t.keys = knobs.pick("keys", ladder(f.first.vector.extent, {1, 2, 4, 6, 8, 10, 12, 14}, best.keys),
                      best.keys);
  t.rows = knobs.pick("rows", ladder(std::max(rows, lanes), {1, 2, 4, 6, 8, 12, 16}, best.rows),
                      best.rows);
  t.value_vectors =
      knobs.pick("value_vectors",
                 ladder(vectors_of(f.second.vector.extent), {1, 2, 3, 4, 6, 8}, best.value_vectors),
                 best.value_vectors);
  const int64_t free = registers_free(target);
  knobs.require(
      [free](const Point& p) {
        const int64_t first = p.number("rows_in_lanes") ? p.number("keys") : p.number("rows");
        return registers_used({first, 1, p.number("vectors")}) <= free &&
               registers_used({p.number("rows"), 1, p.number("value_vectors")}) <= free;
      },
      "a tile needs more vector registers than the target has");
  knobs.require(
      [lanes](const Point& p) {
        return !p.number("rows_in_lanes") || p.number("vectors") * lanes % p.number("rows") == 0;
      },
      "a block of rows is no whole number of tiles");
  const int64_t columns = f.fold.empty() ? 0 : f.second.reduce[0].extent;
  knobs.require(
      [columns, lanes, contiguous = f.first.x_contiguous](const Point& p) {
        if (p.number("rows_in_lanes")) return columns % p.number("keys") == 0;
        return !contiguous || columns % (p.number("vectors") * lanes) == 0;
      },
      "a tile of columns is no whole number of register tiles");
  return t;
}

/// The loops of a copy at `tile`, a loop that its stage made inside others of the same name.
std::vector<Loop> copy_loops(Schedule& s, const std::string& copy, const Loop& tile) {
  const std::vector<Loop> all = s[copy].loops();
  size_t at = all.size();
  while (at > 0 && all[at - 1].name != tile.name) --at;
  return std::vector<Loop>(all.begin() + static_cast<std::ptrdiff_t>(at), all.end());
}

/// Copies a register tile out: `lanes` in vectors, the other loops unrolled.
void finish_copy(Schedule& s, const std::string& copy, const std::vector<Loop>& loops,
                 const Loop& lanes) {
  std::vector<LoopRef> order;
  for (const Loop& loop : loops)
    if (!(loop == lanes)) {
      order.push_back(loop);
      s[copy].unroll(loop);
    }
  order.push_back(lanes);
  s[copy].reorder(order);
  s[copy].vectorize(lanes, {Tail::mask});
}

/// The loops round the stages of a block of rows.
struct Loops {
  std::vector<Loop> shared;  // batch and blocks of rows
  Loop block, columns;       // one block; one tile of columns in it, the same where there are none
  Loop tile, row, column;    // the second product's tile, and inside it
};

/// i e j   ->   e.o i.t j i.i e.i, inside the loops that `outer` names
void tile_second(Schedule& s, const FusedProducts& f, const FusedTiles& t, const Loop& rows,
                 std::vector<LoopRef> outer, Loops& l) {
  StageSteps second = s[f.second.stage];
  const int64_t lanes = s.target().lanes(f.second.dtype);
  const auto [columns, column] = second.split(f.second.vector.loop, t.value_vectors * lanes);
  outer.push_back(columns);
  l.tile = columns;
  l.row = rows;
  l.column = column;
  if (t.rows_in_lanes) {
    const auto [tile, row] = second.split(rows, t.rows);
    outer.push_back(tile);
    l.tile = tile;
    l.row = row;
  }
  outer.insert(outer.end(), {Loop{f.second.stage, f.second.reduce[0].loop}, l.row, column});
  second.reorder(outer);
}

/// batch.. i e j   ->   batch.. i.o | e.o i.t j i.i e.i; the sum in registers and the maps behind
/// it
Loops place_whole(Schedule& s, const FusedProducts& f, const FusedTiles& t,
                  std::vector<std::string>& done) {
  const std::string& second = f.second.stage;
  Loops l;
  for (const LoopExtent& batch : f.second.batch) l.shared.push_back({second, batch.loop});
  const auto [block, rows] =
      s[second].split(f.second.rows->loop, t.block(s.target().lanes(f.second.dtype)));
  l.shared.push_back(block);
  l.block = l.columns = block;
  tile_second(s, f, t, rows, std::vector<LoopRef>(l.shared.begin(), l.shared.end()), l);
  done.push_back(second);
  const size_t in_tile = place_sum(s, second, f.second.output, l.tile, done);
  for (size_t n = 1; n < in_tile; ++n) finish_map_in_tile(s, done[n], l.tile);
  return l;
}

/// The fold's batch.. i e t   ->   batch.. i.o | t i.i e vectorize, with the second product inside
/// t
Loops place_folded(Schedule& s, const FusedProducts& f, const FusedTiles& t,
                   std::vector<std::string>& done) {
  Loops l;
  std::vector<Loop> own = s[f.fold].loops();
  l.shared.assign(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(f.row_dims) - 1);
  const Loop column = own[f.row_dims];
  const auto [block, row] =
      s[f.fold].split(own[f.row_dims - 1], t.block(s.target().lanes(f.second.dtype)));
  l.shared.push_back(block);
  l.block = block;
  l.columns = own.back();
  s[f.fold].reorder({block, l.columns, row, column});
  for (const std::string& stage : fuse_epilogue(s, block)) {
    done.push_back(stage);
    finish_map_in_loop(s, stage, block);
  }
  s.apply(ComputeAt{f.second.stage, f.fold, l.columns.name});
  s[f.fold].vectorize(column, {Tail::mask});
  s.try_apply(Partition{f.fold, l.columns.name});
  const std::vector<Loop> inside = loops_below(s, f.second.stage, l.columns);
  std::vector<LoopRef> outer(inside.begin(),
                             inside.begin() + static_cast<std::ptrdiff_t>(f.row_dims) - 1);
  outer.push_back(inside[f.row_dims]);
  tile_second(s, f, t, inside[f.row_dims - 1], outer, l);
  const std::string store = s[f.second.stage].cache_write(l.tile, {Scope::reg}).store;
  const std::vector<Loop> copy = copy_loops(s, store, l.tile);
  finish_copy(s, store, copy, copy.back());
  s.try_apply(Partition{f.second.stage, f.second.reduce[0].loop});
  done.insert(done.end(), {f.fold, f.second.stage, store});
  return l;
}

/// One stage between the products, at the block's loop.
struct Part {
  Schedule& s;
  const FusedProducts& f;
  const FusedTiles& tiles;
  const FusedStage& stage;
  Loop block;
  std::vector<std::string>& done;

  std::vector<Loop> loops() const { return loops_below(s, stage.name, block); }
  StageSteps steps() const { return s[stage.name]; }
  void in_registers(const Loop& at, const std::function<void(const std::string&)>& copy) const {
    const std::string store = steps().cache_write(at, {Scope::reg}).store;
    copy(store);
    done.push_back(store);
  }

  void store_rows_innermost() const;
  void first_with_rows_in_lanes() const;
  void first_with_keys_in_lanes() const;
  void reduction_with_rows_in_lanes() const;
  void map_with_rows_in_lanes() const;
  void schedule() const;
};

/// The buffer [.., i, j] in memory as [.., j, i].
void Part::store_rows_innermost() const {
  std::vector<LayoutDim> layout;
  const int row = static_cast<int>(f.row_dims) - 1;
  for (int d = 0; d < row; ++d) layout.push_back({d, 1, 0});
  layout.insert(layout.end(), {{row + 1, 1, 0}, {row, 1, 0}});
  s.pack(stage.buffer, layout);
}

/// i j c   ->   j.o c j.i unroll, i vectorize: keys are the rows of the tile
void Part::first_with_rows_in_lanes() const {
  const std::vector<Loop> l = loops();
  const Loop i = l[f.row_dims - 1], j = l[f.row_dims], c = l[f.row_dims + 1];
  const auto [tile, key] = steps().split(j, tiles.keys);
  steps().reorder({tile, c, key, i});
  in_registers(tile, [&, at = tile](const std::string& store) {
    const std::vector<Loop> copy = copy_loops(s, store, at);
    finish_copy(s, store, copy, copy[copy.size() - 2]);
  });
  steps().unroll(key);
  steps().vectorize(i, {Tail::mask});
}

/// i j c   ->   j.o c i unroll, j.i vectorize; where keys are rows, j i c vectorize: dot products
void Part::first_with_keys_in_lanes() const {
  const std::vector<Loop> l = loops();
  const Loop i = l[f.row_dims - 1], j = l[f.row_dims], c = l[f.row_dims + 1];
  if (!f.first.x_contiguous) {
    steps().reorder({j, i, c});
    s.try_apply(Vectorize{stage.name, c.name, Tail::mask});
    return;
  }
  const auto [tile, lane] = steps().split(j, tiles.vectors * s.target().lanes(f.second.dtype));
  steps().reorder({tile, c, i, lane});
  in_registers(tile,
               [&, at = tile](const std::string& store) { finish_map_in_tile(s, store, at); });
  steps().unroll(i);
  steps().vectorize(lane, {Tail::mask});
}

/// i j   ->   j, i vectorize: as many sums as rows
void Part::reduction_with_rows_in_lanes() const {
  std::vector<Loop> l = loops();
  const Loop i = l[f.row_dims - 1], j = l.back();
  const auto [all, row] = steps().split(i, tiles.vectors * s.target().lanes(f.second.dtype));
  steps().reorder({all, j, row});
  in_registers(all, [&, at = all](const std::string& store) {
    const std::vector<Loop> copy = copy_loops(s, store, at);
    finish_copy(s, store, copy, copy[f.row_dims - 1]);
  });
  steps().vectorize(row, {Tail::mask});
  s.try_apply(Partition{stage.name, j.name});
}

/// i j   ->   j, i vectorize; where an operand's neighbours lie along j: i.o j.o j.i unroll, i.i
/// vectorize, squares that registers transpose
void Part::map_with_rows_in_lanes() const {
  const std::vector<Loop> l = loops();
  const Loop i = l[f.row_dims - 1];
  if (!stage.across) {
    if (stage.columns) steps().reorder({l[f.row_dims], i});
    steps().vectorize(i, {Tail::mask});
    return;
  }
  const int64_t lanes = s.target().lanes(f.second.dtype);
  const auto [rows, row] = steps().split(i, lanes);
  const auto [columns, column] = steps().split(l[f.row_dims], lanes);
  steps().reorder({rows, columns, column, row});
  steps().unroll(column);
  steps().vectorize(row, {Tail::mask});
}

void Part::schedule() const {
  const bool first = stage.name == f.first.stage;
  if (!tiles.rows_in_lanes) {
    if (first) return first_with_keys_in_lanes();
    if (!stage.reduces) return finish_map_in_loop(s, stage.name, block);
    s.try_apply(Vectorize{stage.name, loops().back().name, Tail::mask});
    return;
  }
  if (stage.columns) store_rows_innermost();
  if (first) return first_with_rows_in_lanes();
  if (stage.reduces) return reduction_with_rows_in_lanes();
  map_with_rows_in_lanes();
}

}  // namespace

void attention_template(Schedule& s, Knobs& knobs) {
  const auto f = find_fused_products(s.program());
  TENON_CHECK(f, "attention_template on a program that is no product, rows and product");
  const FusedTiles tiles = choose(*f, s.target(), knobs);
  for (size_t n = f->ahead.size(); n-- > 0;) s.try_apply(ComputeInline{f->ahead[n].name});
  std::vector<std::string> done;
  const bool whole = f->fold.empty();
  const Loops l = whole ? place_whole(s, *f, tiles, done) : place_folded(s, *f, tiles, done);
  s[f->second.stage].unroll(l.row);
  s[f->second.stage].vectorize(l.column, {Tail::mask});
  const std::string& round = whole ? f->second.stage : f->fold;
  std::vector<FusedStage> inside;
  for (size_t n = f->between.size(); n-- > 0;) {
    const FusedStage& stage = f->between[n];
    const Loop& at = stage.before ? l.block : l.columns;
    if (s.has_stage(stage.name) && !s.try_apply(ComputeAt{stage.name, round, at.name}))
      inside.push_back(stage);
  }
  for (const FusedStage& stage : inside) {
    Part{s, *f, tiles, stage, stage.before ? l.block : l.columns, done}.schedule();
    done.push_back(stage.name);
  }
  fuse_and_parallel(s, round, l.shared);
  schedule_rest(s, done);
}

}  // namespace tenon
