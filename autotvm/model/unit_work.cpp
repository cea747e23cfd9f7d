#include "autotvm/model/unit_work.h"

#include <tenon/ir/intrinsic.h>
#include <tenon/ir/visit.h>

#include <algorithm>

#include "ir/tile_nest.h"
#include "schedule/composites/unit_cost.h"

namespace tenon {
namespace {

bool is_tile_loop(const For& loop) {
  return loop.mark == LoopMark::tensorize && loop.intrinsic && parts_of(*loop.intrinsic).is_tile();
}

/// The loop's nest with the reductions outside, but for the terms of a lane.
Stmt sums_first(const For& tiles) {
  std::vector<const For*> spatial, sums;
  const Stmt* body = nullptr;
  for (const For* loop = &tiles; loop; loop = body->as<For>()) {
    (loop->kind == AxisKind::reduce ? sums : spatial).push_back(loop);
    body = &loop->body;
  }
  std::vector<const For*> order(sums.begin(), sums.empty() ? sums.end() : sums.end() - 1);
  order.insert(order.end(), spatial.begin(), spatial.end());
  if (!sums.empty()) order.push_back(sums.back());
  Stmt out = *body;
  for (size_t n = order.size(); n-- > 0;) {
    For loop = *order[n];
    loop.body = out;
    out = make_stmt(std::move(loop));
  }
  return out;
}

Stmt reordered(const Stmt& s) {
  if (const For* loop = s.as<For>(); loop && is_tile_loop(*loop)) return sums_first(*loop);
  return map_children(
      s, [](const Stmt& child) { return reordered(child); }, [](const Expr& e) { return e; });
}

bool has_tiles(const Stmt& s) {
  if (!s.defined()) return false;
  if (const For* loop = s.as<For>()) return is_tile_loop(*loop) || has_tiles(loop->body);
  if (const Allocate* a = s.as<Allocate>()) return has_tiles(a->body);
  const Seq* parts = s.as<Seq>();
  return parts && std::any_of(parts->stmts.begin(), parts->stmts.end(), has_tiles);
}

/// The nest of a stage from the loop on that is marked, which has so many loops outside.
struct UnitNest {
  size_t outside = 0;
  IntrinsicParts parts;
  int64_t tiles = 1, rows = 1, lanes = 1;
};

std::optional<UnitNest> find_nest(const NestTree& tree, const NestStage& stage) {
  const auto loop = [&](size_t l) -> const NestLoop& {
    return tree.loops[static_cast<size_t>(stage.path[l])];
  };
  UnitNest nest;
  while (nest.outside < stage.path.size() && !is_tile_loop(*loop(nest.outside).loop))
    ++nest.outside;
  if (nest.outside == stage.path.size()) return std::nullopt;
  nest.parts = parts_of(*loop(nest.outside).loop->intrinsic);
  std::vector<int64_t> spatial;
  for (size_t l = nest.outside; l < stage.path.size(); ++l)
    if (loop(l).loop->kind == AxisKind::spatial)
      spatial.push_back(static_cast<int64_t>(loop(l).extent));
  nest.lanes = spatial.back();
  if (spatial.size() > 1) nest.rows = spatial[spatial.size() - 2];
  if (spatial.size() > 2) nest.tiles = spatial[0];
  return nest;
}

}  // namespace

Program tiles_inside_sums(const Program& program) {
  if (!has_tiles(program.body)) return program;
  Program out = program;
  out.body = reordered(program.body);
  return out;
}

std::optional<StageWork> unit_work_of(const NestTree& tree, const NestStage& stage,
                                      const Sharing& sharing) {
  const auto nest = find_nest(tree, stage);
  if (!nest) return std::nullopt;
  double nests = 1, steps = 1.0 / static_cast<double>(nest->parts.steps);
  for (size_t l = 0; l < nest->outside; ++l) {
    const NestLoop& loop = tree.loops[static_cast<size_t>(stage.path[l])];
    (loop.loop->kind == AxisKind::reduce ? steps : nests) *=
        loop.extent * (l == sharing.loop ? sharing.share : 1);
  }
  const RowTiles cut = cut_into_tiles(nest->rows, nest->parts.rows);
  const int64_t row_tiles = nest->tiles * cut.count, lane_tiles = nest->lanes / nest->parts.lanes;
  StageWork w;
  w.full.vectors = static_cast<double>(row_tiles * cut.each * lane_tiles);
  w.full.ops = static_cast<double>(row_tiles * lane_tiles) * 16;
  w.full.contiguous = static_cast<double>(row_tiles * cut.each + 16 * lane_tiles);
  w.full.accumulators = w.full.registers = static_cast<double>(row_tiles * lane_tiles);
  w.steps = nests * steps;
  w.cycles = w.steps * unit_step_cycles(row_tiles, cut.each, lane_tiles);
  w.ends = nests * unit_end_cycles(row_tiles, cut.each, lane_tiles);
  w.points = w.steps * static_cast<double>(nest->tiles * nest->rows * nest->lanes *
                                           nest->parts.steps * nest->parts.group);
  w.lanes = static_cast<int>(nest->parts.lanes);
  w.instructions = w.steps * w.full.ops;
  double useful = 1;
  for (const NestAxis& a : stage.axes)
    if (a.form.span[0] + 1 > a.extent) useful *= a.extent / (a.form.span[0] + 1.0);
  w.points *= useful;
  w.wasted =
      1 - useful * static_cast<double>(nest->rows) / static_cast<double>(cut.count * cut.each);
  return w;
}

}  // namespace tenon
