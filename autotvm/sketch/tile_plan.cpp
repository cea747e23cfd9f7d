#include <algorithm>
#include <cmath>

#include "autotvm/sketch/block_maps.h"
#include "autotvm/sketch/matrix_unit.h"
#include "autotvm/sketch/plan_knobs.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/fitting_intrinsics.h"
#include "schedule/composites/nests.h"

namespace tenon {
namespace {

constexpr int64_t kMostUnrolled = 512;  // vector operations in one straight piece of code
constexpr int64_t kStandardSteps = 4;   // loads that pass over several steps are fetched ahead
constexpr size_t kReuseAxes = 2;        // besides the vectors, that get a register tile by default

/// The axis is worth a register tile: something is used again along it.
bool has_inner(const AnchorNest& nest, size_t axis, size_t vector_axis) {
  return axis != vector_axis && nest.axes[axis].extent > 1 && nest.reuses_along(axis);
}

/// The axis beside the vectors that is cut into blocks: of those with a register tile the one of
/// most elements.
std::optional<size_t> main_axis(const AnchorNest& nest, size_t vector_axis) {
  std::optional<size_t> found;
  for (size_t n = 0; n < nest.spatial; ++n)
    if (has_inner(nest, n, vector_axis) &&
        (!found || nest.axes[n].extent > nest.axes[*found].extent))
      found = n;
  return found;
}

int64_t elements(const Operand& operand, const std::vector<int64_t>& inner) {
  int64_t count = 1;
  for (size_t n = 0; n < inner.size(); ++n)
    if (operand.moves(n)) count *= inner[n];
  return count;
}

/// Vector registers that a step keeps busy. `inner` counts vectors along the vector axis.
int64_t tile_registers(const AnchorNest& nest, const std::vector<int64_t>& inner,
                       size_t vector_axis) {
  int64_t sums = 1, vectors = 0;
  for (int64_t n : inner) sums *= n;
  for (const Operand& o : nest.operands)
    if (o.moves(vector_axis)) vectors = std::max(vectors, elements(o, inner));
  return sums + std::min(vectors, inner[vector_axis]) + 1;
}

/// Cycles of the whole on one core, from registers alone: the longest of multiply-adds and loads
/// (two a cycle each) and the latency of a sum, a little for each load, rests as whole tiles.
double register_cycles(const AnchorNest& nest, const std::vector<int64_t>& inner,
                       size_t vector_axis, int64_t lanes) {
  double tiles = 1, sums = 1, loads = 0;
  for (size_t n = 0; n < nest.spatial; ++n) {
    const int64_t each = inner[n] * (n == vector_axis ? lanes : 1);
    tiles *= static_cast<double>(ceil_div(nest.axes[n].extent, each));
    sums *= static_cast<double>(inner[n]);
  }
  for (const Operand& o : nest.operands) loads += static_cast<double>(elements(o, inner));
  return tiles * (std::max({sums / 2, loads / 2, 4.0}) + 0.2 * loads);
}

const std::vector<int64_t> kInnerSizes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28};

/// Elements along each axis (vectors along the vector axis) of the register tile of least cycles.
std::vector<int64_t> best_inner(const AnchorNest& nest, size_t vector_axis, const Target& target) {
  const int64_t lanes = target.lanes(nest.dtype), free = registers_free(target);
  std::vector<int64_t> best(nest.spatial, 1), inner = best;
  std::vector<size_t> cut = {vector_axis};
  for (size_t n = nest.spatial; n-- > 0 && cut.size() <= kReuseAxes;)
    if (has_inner(nest, n, vector_axis)) cut.push_back(n);
  double least = register_cycles(nest, best, vector_axis, lanes);
  const std::function<void(size_t)> look = [&](size_t k) {
    if (k == cut.size()) {
      const double cycles = register_cycles(nest, inner, vector_axis, lanes);
      if (tile_registers(nest, inner, vector_axis) <= free && cycles < least * 0.999) {
        least = cycles;
        best = inner;
      }
      return;
    }
    const size_t axis = cut[k];
    const int64_t most =
        axis == vector_axis ? ceil_div(nest.axes[axis].extent, lanes) : nest.axes[axis].extent;
    for (int64_t size : kInnerSizes) {
      if (size > std::min(most, free)) break;
      inner[axis] = size;
      look(k + 1);
    }
    inner[axis] = 1;
  };
  look(0);
  return best;
}

/// Points of the innermost reductions that may be written out: whole loops from the inside out, and
/// parts of the last of them.
std::vector<int64_t> step_sizes(const AnchorNest& nest) {
  std::vector<int64_t> sizes = {1};
  int64_t whole = 1;
  for (size_t n = nest.axes.size(); n-- > nest.spatial;) {
    for (int64_t part : {2, 4, 8, 16})
      if (part < nest.axes[n].extent) sizes.push_back(whole * part);
    whole *= nest.axes[n].extent;
    if (whole > 64) break;
    sizes.push_back(whole);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

int64_t standard_steps(const std::vector<int64_t>& sizes, int64_t sums) {
  int64_t steps = 1;
  for (int64_t size : sizes)
    if (size <= std::max<int64_t>(kStandardSteps, 9) && size * sums <= kMostUnrolled) steps = size;
  return steps;
}

/// The axis that the operand's tiles can be cut along: the vectors', or one with a register tile.
std::optional<size_t> packed_along(const AnchorNest& nest, const Operand& o, size_t vector_axis) {
  if (o.moves(vector_axis))
    return nest.dim_of(o, vector_axis) ? std::optional(vector_axis) : std::nullopt;
  for (size_t n = 0; n < nest.spatial; ++n)
    if (has_inner(nest, n, vector_axis) && nest.dim_of(o, n)) return n;
  return std::nullopt;
}

std::string standard_pack(const AnchorNest& nest, const Operand& o, size_t vector_axis) {
  if (!o.moves(vector_axis) || !packed_along(nest, o, vector_axis)) return "no";
  if (o.constant) return "ahead";
  if (!o.neighbours_along(vector_axis)) return "root";
  const auto main = main_axis(nest, vector_axis);
  return main && nest.axes[*main].extent >= 64 ? "block" : "no";
}

/// Requirements on points: what fits the registers and is worth compiling.
void require_fit(const TileSketch& sketch, const Target& target, Knobs& knobs) {
  const int64_t free = registers_free(target);
  const auto nest = sketch.nest;
  const size_t v = sketch.vector_axis;
  const auto inner_of = [nest, v](const Point& p) {
    std::vector<int64_t> inner(nest->spatial, 1);
    for (size_t n = 0; n < nest->spatial; ++n)
      if (has_inner(*nest, n, v)) inner[n] = p.number("inner." + nest->axes[n].loop);
    inner[v] = p.number("vectors");
    return inner;
  };
  knobs.require([=](const Point& p) { return tile_registers(*nest, inner_of(p), v) <= free; },
                "the tile needs more vector registers than the target has");
  knobs.require(
      [=](const Point& p) {
        int64_t code = p.number("steps");
        for (int64_t n : inner_of(p)) code *= n;
        return code <= kMostUnrolled;
      },
      "the written out steps are too much code");
}

/// Blocks along the vector axis whose packed copy fits half of the second cache.
int64_t standard_pieces(const AnchorNest& nest, size_t vector_axis, int64_t width,
                        const Target& target) {
  double bytes = static_cast<double>(nest.axes[vector_axis].extent * byte_size(nest.dtype));
  for (size_t n = nest.spatial; n < nest.axes.size(); ++n)
    bytes *= static_cast<double>(nest.axes[n].extent);
  const double half = 0.5 * static_cast<double>(target.l2_bytes);
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(bytes / half)), 1,
                             ceil_div(nest.axes[vector_axis].extent, width));
}

TilePlan standard_plan(const AnchorNest& nest, size_t vector_axis,
                       const std::vector<int64_t>& sizes, const Target& target) {
  TilePlan plan;
  plan.inner = best_inner(nest, vector_axis, target);
  int64_t sums = 1;
  for (int64_t n : plan.inner) sums *= n;
  plan.inner[vector_axis] *= target.lanes(nest.dtype);
  plan.pieces.assign(nest.spatial, 1);
  plan.pieces[vector_axis] = standard_pieces(nest, vector_axis, plan.inner[vector_axis], target);
  plan.steps = standard_steps(sizes, sums);
  for (const Operand& o : nest.operands) plan.pack.push_back(standard_pack(nest, o, vector_axis));
  plan.inlined = false;
  return plan;
}

/// What a sketch with these vectors is expected to take.
double expected_cycles(const AnchorNest& nest, size_t vector_axis, const Target& target) {
  double cycles = register_cycles(nest, best_inner(nest, vector_axis, target), vector_axis,
                                  target.lanes(nest.dtype));
  for (const Operand& o : nest.operands) {
    if (!o.moves(vector_axis)) continue;
    const int64_t step = std::abs(o.step_in_rows(vector_axis));
    if (step != 1)  // packed, every second element of two vectors, or gathered
      cycles *= nest.dim_of(o, vector_axis) ? 1.05 : step == 2 ? 1.5 : 4;
  }
  return cycles;
}

/// Some loop at the block level can move the operand.
bool has_block(const TileSketch& sketch, const Operand& o) {
  const AnchorNest& nest = *sketch.nest;
  for (size_t n = 0; n < nest.spatial; ++n)
    if (o.moves(n) && (n == sketch.vector_axis || n == sketch.main || !nest.reuses_along(n)))
      return true;
  return !sketch.unit && o.moves(nest.longest_reduction());
}

}  // namespace

bool is_reordered(const TileSketch& sketch, const Operand& o) {
  const bool lanes = o.moves(sketch.vector_axis);
  if (sketch.dots && !lanes)  // groups are read as they lie
    return sketch.unit && !o.neighbours_along(sketch.sum_axis);
  return packed_along(*sketch.nest, o, sketch.vector_axis).has_value();
}

std::vector<int64_t> piece_counts(const TileSketch& sketch, size_t axis) {
  const int64_t tiles = ceil_div(sketch.nest->axes[axis].extent, sketch.standard.inner[axis]);
  return ladder(tiles, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64}, sketch.standard.pieces[axis]);
}

int64_t pick_pieces(const TileSketch& sketch, size_t axis, Knobs& knobs) {
  return knobs.pick("pieces." + sketch.nest->axes[axis].loop, piece_counts(sketch, axis),
                    sketch.standard.pieces[axis]);
}

std::vector<std::string> pack_words(const TileSketch& sketch, const Operand& o) {
  const bool packed = is_reordered(sketch, o);
  const bool made = o.computed && sketch.has_prologue && has_block(sketch, o);
  const bool needed = sketch.dots && packed;  // groups are made
  std::vector<std::string> words;
  if (!needed) words.push_back("no");
  if (packed && o.constant) {
    words.push_back("ahead");
    return words;
  }
  if (packed || made) words.push_back("block");
  if (made) words.push_back("outer");
  if (packed || (made && sketch.unit)) words.push_back("root");
  return words;
}

void pick_copies(const TileSketch& sketch, Knobs& knobs, TilePlan& plan) {
  for (size_t n = 0; n < sketch.nest->operands.size(); ++n) {
    const Operand& o = sketch.nest->operands[n];
    plan.pack[n] = knobs.choice("pack." + o.buffer, pack_words(sketch, o), sketch.standard.pack[n]);
  }
  if (sketch.has_prologue) plan.inlined = knobs.flag("inline", sketch.standard.inlined);
}

TilePlan read_plan(const TileSketch& sketch, const Target& target, Knobs& knobs) {
  if (sketch.unit) return read_unit_plan(sketch, knobs);
  const AnchorNest& nest = *sketch.nest;
  const TilePlan& standard = sketch.standard;
  const size_t v = sketch.vector_axis;
  const int64_t lanes = target.lanes(nest.dtype), free = registers_free(target);
  TilePlan plan = standard;
  for (size_t n = 0; n < nest.spatial; ++n) {
    if (!has_inner(nest, n, v)) continue;
    const int64_t most = std::min(nest.axes[n].extent, free);
    plan.inner[n] = knobs.pick("inner." + nest.axes[n].loop,
                               ladder(most, kInnerSizes, standard.inner[n]), standard.inner[n]);
  }
  const int64_t width = ceil_div(nest.axes[v].extent, lanes), vectors = standard.inner[v] / lanes;
  plan.inner[v] = lanes * knobs.pick("vectors",
                                     ladder(std::min<int64_t>(width, 16),
                                            {1, 2, 3, 4, 5, 6, 8, 12, 16}, vectors),
                                     vectors);
  plan.pieces[v] = pick_pieces(sketch, v, knobs);
  if (sketch.main) plan.pieces[*sketch.main] = pick_pieces(sketch, *sketch.main, knobs);
  const int64_t k = nest.axes[nest.longest_reduction()].extent;
  if (k >= 64)
    plan.k_block = knobs.pick("k_block", ladder(k - 1, {0, 32, 64, 128, 192, 256, 384, 512}, 0), 0);
  plan.steps = knobs.pick("steps", sketch.step_sizes, standard.steps);
  plan.vector_blocks_first = knobs.flag("vector_blocks_first", standard.vector_blocks_first);
  plan.vector_tiles_first = knobs.flag("vector_tiles_first", standard.vector_tiles_first);
  pick_copies(sketch, knobs, plan);
  return plan;
}

std::vector<TileSketch> tile_sketches(const AnchorNest& nest, bool has_prologue,
                                      const Target& target) {
  const auto shared = std::make_shared<const AnchorNest>(nest);
  const std::vector<int64_t> sizes = step_sizes(nest);
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t n = 0; n < nest.spatial; ++n) {
    const bool narrow = 2 * nest.axes[n].extent < target.lanes(nest.dtype);
    if (narrow && !ranked.empty()) continue;
    ranked.push_back({expected_cycles(nest, n, target), n});
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<TileSketch> out;
  for (const auto& [cycles, axis] : ranked) {
    out.push_back({shared, axis, has_prologue});
    out.back().standard = standard_plan(nest, axis, sizes, target);
    out.back().step_sizes = sizes;
    out.back().main = main_axis(nest, axis);
    if (has_prologue) place_maps(out.back(), target);
  }
  return out;
}

std::vector<TileSketch> dot_sketches(const Program& program, const AnchorNest& nest,
                                     bool has_prologue, const Target& target) {
  const Stage* stage = nullptr;
  for (const StagePath& path : stage_paths(program.body))
    if (path.stage->name == nest.stage) stage = path.stage;
  const std::vector<FittingIntrinsic> fitting = fitting_intrinsics(stage, target, false);
  const size_t last = nest.axes.size() - 1;
  std::vector<TileSketch> out;
  if (fitting.empty()) return out;
  const int64_t group = fitting[0].parts.group;
  const auto grouped = [&](const Operand& o) { return nest.dim_of(o, last).has_value(); };
  if (nest.axes[last].extent % group != 0 ||
      !std::all_of(nest.operands.begin(), nest.operands.end(), grouped))
    return out;
  AnchorNest groups = nest;
  groups.axes[last].extent /= group;
  for (TileSketch& sketch : tile_sketches(groups, has_prologue, target)) {
    const size_t v = sketch.vector_axis;
    const auto fits = [&](const Operand& o) {
      return o.moves(v) ? nest.dim_of(o, v).has_value() : o.neighbours_along(last);
    };
    if (!std::all_of(nest.operands.begin(), nest.operands.end(), fits)) continue;
    sketch.dots = fitting[0].intrinsic;
    sketch.group = group;
    sketch.sum_axis = last;
    for (size_t n = 0; n < nest.operands.size(); ++n)
      if (nest.operands[n].moves(v) && sketch.standard.pack[n] == "no")
        sketch.standard.pack[n] = "root";
    out.push_back(std::move(sketch));
  }
  return out;
}

TilePlan choose_tiles(const TileSketch& sketch, const Target& target, Knobs& knobs) {
  const TilePlan plan = read_plan(sketch, target, knobs);
  if (sketch.unit)
    require_unit_fit(knobs);
  else
    require_fit(sketch, target, knobs);
  if (sketch.has_prologue) require_copies(sketch, target, knobs);
  return plan;
}

}  // namespace tenon
