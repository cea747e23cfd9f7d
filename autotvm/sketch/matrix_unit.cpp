#include "autotvm/sketch/matrix_unit.h"

#include <algorithm>

#include "autotvm/sketch/block_maps.h"
#include "autotvm/sketch/plan_knobs.h"
#include "ir/tile_nest.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/fitting_intrinsics.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/unit_cost.h"

namespace tenon {
namespace {

constexpr double kLeastUsed = 0.25;   // of a tile's steps and lanes, where they are padded
constexpr int64_t kPieceOfRow = 512;  // bytes of an operand that a block at least copies in order
constexpr int64_t kMostRowTiles = 5, kMostLaneTiles = 4;

int64_t whole(int64_t extent, int64_t size) { return ceil_div(extent, size) * size; }

/// The operand of the lanes, and that of the rows.
struct Factors {
  const Operand *rows = nullptr, *lanes = nullptr;
};

std::optional<Factors> factors_of(const AnchorNest& nest) {
  const size_t v = nest.spatial - 1;
  if (nest.operands.size() != 2 || nest.operands[0].moves(v) == nest.operands[1].moves(v))
    return std::nullopt;
  const bool first = nest.operands[0].moves(v);
  const Factors f{&nest.operands[first ? 1 : 0], &nest.operands[first ? 0 : 1]};
  return nest.dim_of(*f.lanes, v) ? std::optional(f) : std::nullopt;
}

/// The axis moves the operand by a positive number of elements along every dimension that it moves.
bool strides_along(const Operand& o, size_t axis) {
  bool found = false;
  for (const OperandDim& dim : o.dims)
    for (size_t n = 0; n < dim.axes.size(); ++n) {
      if (dim.axes[n] != axis) continue;
      if (dim.steps[n] <= 0) return false;
      found = true;
    }
  return found;
}

/// Axes of the rows' operand alone: the one that fills most of a tile, the innermost of equals, and
/// the one before it where that does not.
std::optional<UnitAxes> choose_rows(const AnchorNest& nest, const Factors& f, int64_t side) {
  std::vector<size_t> free;
  for (size_t n = 0; n + 1 < nest.spatial; ++n)
    if (strides_along(*f.rows, n) && !f.lanes->moves(n) && nest.axes[n].extent > 1)
      free.push_back(n);
  if (free.empty()) return std::nullopt;
  UnitAxes unit;
  unit.side = side;
  unit.rows = free[0];
  const auto filled = [&](size_t n) { return std::min(nest.axes[n].extent, side); };
  for (size_t n : free)
    if (filled(n) >= filled(unit.rows)) unit.rows = n;
  if (nest.axes[unit.rows].extent <= side)
    for (size_t n : free)
      if (n != unit.rows) unit.tiles = n;
  return unit;
}

/// What the axes must become multiples of, for the sum along `sum`; nothing where too little of the
/// tiles would be used.
std::optional<std::vector<int64_t>> paddings_for(const AnchorNest& nest, size_t sum,
                                                 const IntrinsicParts& parts) {
  std::vector<int64_t> paddings(nest.axes.size(), 1);
  paddings[nest.spatial - 1] = parts.lanes;
  paddings[sum] = parts.steps * parts.group;
  double used = 1;
  bool grows = false;
  for (size_t n = 0; n < paddings.size(); ++n) {
    const int64_t to = whole(nest.axes[n].extent, paddings[n]);
    used *= static_cast<double>(nest.axes[n].extent) / static_cast<double>(to);
    grows = grows || to != nest.axes[n].extent;
  }
  if (used < kLeastUsed) return std::nullopt;
  return grows ? paddings : std::vector<int64_t>{};
}

/// Reductions that the steps of a tile can be, the best first: without padding, with terms that lie
/// next to each other for the rows, long ones.
std::vector<size_t> sums_of(const AnchorNest& nest, const Factors& f, const IntrinsicParts& parts) {
  std::vector<size_t> out;
  for (size_t n = nest.spatial; n < nest.axes.size(); ++n)
    if (nest.dim_of(*f.rows, n) && nest.dim_of(*f.lanes, n) && paddings_for(nest, n, parts))
      out.push_back(n);
  const auto rank = [&](size_t n) {
    return std::tuple(!paddings_for(nest, n, parts)->empty(), !f.rows->neighbours_along(n),
                      -nest.axes[n].extent);
  };
  std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return out;
}

/// The pixels of one nest: the points of `tiles`, the rows of each, and the tiles they make.
struct Pixels {
  int64_t tiles = 1, rows = 1, count = 1, each = 1;
};

Pixels pixels_of(const TileSketch& sketch, int64_t row_tiles) {
  const UnitAxes& unit = *sketch.unit;
  const int64_t extent = sketch.nest->axes[unit.rows].extent, across = ceil_div(extent, unit.side);
  Pixels p;
  if (unit.tiles) p.tiles = std::min(row_tiles, sketch.nest->axes[*unit.tiles].extent);
  p.rows = ceil_div(extent, ceil_div(across, row_tiles));
  const RowTiles cut = cut_into_tiles(p.rows, unit.side);
  p.each = cut.each;
  p.count = p.tiles * cut.count;
  return p;
}

int64_t most_row_tiles(const TileSketch& sketch) {
  const UnitAxes& unit = *sketch.unit;
  const int64_t across = ceil_div(sketch.nest->axes[unit.rows].extent, unit.side);
  return std::min(kMostRowTiles, unit.tiles ? sketch.nest->axes[*unit.tiles].extent : across);
}

int64_t lane_tiles_of(const TileSketch& sketch) {
  return ceil_div(sketch.nest->axes[sketch.vector_axis].extent, sketch.unit->side);
}

void set_tiles(const TileSketch& sketch, int64_t row_tiles, int64_t lane_tiles, TilePlan& plan) {
  const Pixels p = pixels_of(sketch, row_tiles);
  plan.inner.assign(sketch.nest->spatial, 1);
  if (sketch.unit->tiles) plan.inner[*sketch.unit->tiles] = p.tiles;
  plan.inner[sketch.unit->rows] = p.rows;
  plan.inner[sketch.vector_axis] = lane_tiles * sketch.unit->side;
}

/// Nests of pixels and panels of lanes that the plan has, for each point of the other axes.
struct Nests {
  double pixels = 1, panels = 1;
};

Nests nests_of(const TileSketch& sketch, const TilePlan& plan) {
  Nests out;
  const auto count = [&](size_t n) {
    return static_cast<double>(ceil_div(sketch.nest->axes[n].extent, plan.inner[n]));
  };
  out.pixels = count(sketch.unit->rows);
  if (sketch.unit->tiles) out.pixels *= count(*sketch.unit->tiles);
  out.panels = count(sketch.vector_axis);
  return out;
}

/// Cycles of all nests.
double unit_cycles(const TileSketch& sketch, int64_t row_tiles, int64_t lane_tiles) {
  TilePlan plan = sketch.standard;
  set_tiles(sketch, row_tiles, lane_tiles, plan);
  const Pixels p = pixels_of(sketch, row_tiles);
  const Nests nests = nests_of(sketch, plan);
  double steps = 1.0 / static_cast<double>(sketch.unit->side);
  for (size_t n = sketch.nest->spatial; n < sketch.nest->axes.size(); ++n)
    steps *= static_cast<double>(sketch.nest->axes[n].extent);
  const double step = unit_step_cycles(p.count, p.each, lane_tiles),
               ends = unit_end_cycles(p.count, p.each, lane_tiles);
  return nests.pixels * nests.panels * (steps * step + ends);
}

TilePlan standard_plan(const TileSketch& sketch, const Factors& f, const Target& target) {
  TilePlan plan;
  plan.pieces.assign(sketch.nest->spatial, 1);
  std::pair<int64_t, int64_t> best{1, 1};
  double least = -1;
  for (int64_t lanes = 1; lanes <= std::min(kMostLaneTiles, lane_tiles_of(sketch)); ++lanes)
    for (int64_t rows = 1; rows <= most_row_tiles(sketch); ++rows) {
      if (!tiles_fit(rows, lanes)) continue;
      const double cycles = unit_cycles(sketch, rows, lanes);
      if (least >= 0 && cycles >= least * 0.999) continue;
      least = cycles;
      best = {rows, lanes};
    }
  set_tiles(sketch, best.first, best.second, plan);
  const Nests nests = nests_of(sketch, plan);
  // The operand that passes by more seldom is outside.
  plan.vector_tiles_first = nests.panels * f.rows->bytes() <= nests.pixels * f.lanes->bytes();
  plan.vector_blocks_first = true;
  plan.inlined = !sketch.unit->paddings.empty();
  const double half = 0.5 * static_cast<double>(target.l2_bytes);
  for (const Operand& o : sketch.nest->operands) {
    const bool lanes = o.moves(sketch.vector_axis);
    plan.pack.push_back(lanes || !o.neighbours_along(sketch.sum_axis) ? "root" : "no");
    if (lanes && o.constant) plan.pack.back() = "ahead";
    if (!lanes && plan.inlined && o.computed) plan.pack.back() = "root";
    if (plan.pack.back() != "root" || !lanes || !o.neighbours_along(sketch.vector_axis)) continue;
    // Blocks by the core that uses them, of rows long enough for the prefetchers.
    const int64_t row = sketch.nest->axes[sketch.vector_axis].extent * byte_size(o.dtype);
    const int64_t blocks = std::max(row / kPieceOfRow, static_cast<int64_t>(o.bytes() / half) + 1);
    if (blocks < target.cores) continue;
    plan.pieces[sketch.vector_axis] = std::min(blocks, static_cast<int64_t>(nests.panels));
    plan.pack.back() = "block";
  }
  return plan;
}

/// The sketch on a nest that is whole already.
std::optional<TileSketch> sketch_of(const AnchorNest& nest, bool has_prologue,
                                    const FittingIntrinsic& fitting, size_t sum,
                                    std::vector<int64_t> paddings, const Target& target) {
  AnchorNest groups = nest;
  groups.axes[sum].extent /= fitting.parts.group;
  TileSketch sketch{std::make_shared<const AnchorNest>(groups), nest.spatial - 1, has_prologue};
  const auto f = factors_of(*sketch.nest);
  if (!f) return std::nullopt;
  sketch.unit = choose_rows(*sketch.nest, *f, fitting.parts.rows);
  if (!sketch.unit) return std::nullopt;
  sketch.unit->paddings = std::move(paddings);
  sketch.dots = fitting.intrinsic;
  sketch.group = fitting.parts.group;
  sketch.sum_axis = sum;
  sketch.main = sketch.unit->tiles.value_or(sketch.unit->rows);
  sketch.standard = standard_plan(sketch, *f, target);
  if (has_prologue) place_maps(sketch, target);
  return sketch;
}

/// The same where axes have to be padded first: copies of the operands with zeros are maps before
/// the sum.
std::optional<TileSketch> padded_sketch(const Program& program, const AnchorNest& nest,
                                        const FittingIntrinsic& fitting, size_t sum,
                                        const std::vector<int64_t>& paddings,
                                        const Target& target) {
  Schedule s(program, target);
  if (s.try_apply(PadEinsum{nest.stage, paddings})) return std::nullopt;
  const auto padded = find_anchor_nest(s.program(), nest.stage);
  if (!padded) return std::nullopt;
  return sketch_of(*padded, true, fitting, sum, paddings, target);
}

}  // namespace

std::vector<TileSketch> unit_sketches(const Program& program, const AnchorNest& nest,
                                      bool has_prologue, const Target& target) {
  const Stage* stage = nullptr;
  for (const StagePath& path : stage_paths(program.body))
    if (path.stage->name == nest.stage) stage = path.stage;
  const auto f = factors_of(nest);
  if (!f) return {};
  for (const FittingIntrinsic& fitting : fitting_intrinsics(stage, target, true)) {
    if (!choose_rows(nest, *f, fitting.parts.rows)) continue;
    for (size_t sum : sums_of(nest, *f, fitting.parts)) {
      const std::vector<int64_t> paddings = paddings_for(nest, sum, fitting.parts).value();
      const auto sketch = paddings.empty()
                              ? sketch_of(nest, has_prologue, fitting, sum, {}, target)
                              : padded_sketch(program, nest, fitting, sum, paddings, target);
      if (sketch) return {*sketch};
    }
  }
  return {};
}

TilePlan read_unit_plan(const TileSketch& sketch, Knobs& knobs) {
  const TilePlan& standard = sketch.standard;
  const UnitAxes& unit = *sketch.unit;
  const size_t v = sketch.vector_axis;
  TilePlan plan = standard;
  int64_t row_tiles = standard.inner[unit.tiles.value_or(unit.rows)];
  if (!unit.tiles) row_tiles = ceil_div(row_tiles, unit.side);
  row_tiles = knobs.pick("row_tiles", ladder(most_row_tiles(sketch), {1, 2, 3, 4, 5}, row_tiles),
                         row_tiles);
  int64_t lane_tiles = standard.inner[v] / unit.side;
  lane_tiles =
      knobs.pick("lane_tiles", ladder(lane_tiles_of(sketch), {1, 2, 3, 4}, lane_tiles), lane_tiles);
  set_tiles(sketch, row_tiles, lane_tiles, plan);
  plan.pieces[v] = pick_pieces(sketch, v, knobs);
  plan.pieces[*sketch.main] = pick_pieces(sketch, *sketch.main, knobs);
  plan.vector_blocks_first = knobs.flag("vector_blocks_first", standard.vector_blocks_first);
  plan.vector_tiles_first = knobs.flag("vector_tiles_first", standard.vector_tiles_first);
  pick_copies(sketch, knobs, plan);
  return plan;
}

void require_unit_fit(Knobs& knobs) {
  knobs.require(
      [](const Point& p) { return tiles_fit(p.number("row_tiles"), p.number("lane_tiles")); },
      "more tiles of sums than the unit has beside the operands'");
}

}  // namespace tenon
