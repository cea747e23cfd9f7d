#pragma once
#include <tenon/schedule/knobs.h>
#include <tenon/schedule/schedule.h>

#include <memory>
#include <string>
#include <vector>

#include "autotvm/sketch/anchor.h"

namespace tenon {

/// How a reduction is cut, axis by axis (spatial ones; the vector axis counts too):
///
///   batch loops | blocks of one axis | blocks of k | blocks of the other axis |    block level
///     tiles of each axis |                                                         tile level
///       reductions | steps and inner loops unrolled | vectors                      registers
///
/// The sum of a tile lies in registers; the maps after it are computed at the tile's end.
struct TilePlan {
  std::vector<int64_t> inner;   ///< by axis: elements of a tile
  std::vector<int64_t> pieces;  ///< by axis: blocks; 1: no loop of its own
  int64_t k_block = 0;          ///< of the longest reduction; 0: all
  int64_t steps = 1;            ///< points of the innermost reductions that are written out
  bool vector_blocks_first = true, vector_tiles_first = false;
  /// By operand, the copy that is read: "no", "root" (all of it), "ahead", or what a block loop
  /// reads: the innermost that moves the operand ("block") or the outermost ("outer").
  std::vector<std::string> pack;
  /// The maps before it disappear: into the copies, which then compute what they hold (a padded
  /// image block by block), or into the sum itself.
  bool inlined = true;
};

/// How a product runs on a matrix unit: the part that each axis plays beside the vector axis, which
/// is the lanes of a tile.
struct UnitAxes {
  size_t rows = 0;                     ///< of tiles
  std::optional<size_t> tiles = {};    ///< where rows are few: each of its points is a tile
  int64_t side = 0;                    ///< most rows of a tile, and its lanes
  std::vector<int64_t> paddings = {};  ///< by axis, of the sum before; empty: it is whole already
};

/// A space of plans: tiles of the nest with vectors along one of its axes.
struct TileSketch {
  std::shared_ptr<const AnchorNest> nest;
  size_t vector_axis = 0;
  bool has_prologue = false;
  TilePlan standard = {};                ///< in closed form; inner counts elements
  std::vector<int64_t> step_sizes = {};  ///< what TilePlan::steps may be
  std::optional<size_t> main = {};       ///< the axis beside the vectors that is cut into blocks
  /// An instruction that adds up `group` terms of a reduction for each lane; the nest then counts
  /// whole groups along it.
  std::optional<IntrinsicRef> dots = {};
  int64_t group = 1;
  size_t sum_axis = 0;
  std::optional<UnitAxes> unit = {};  ///< `dots` works on tiles
};

/// Whether the sum's vectors lie side by side in what it writes.
inline bool vectors_along_rows(const TileSketch& sketch) {
  return sketch.vector_axis + 1 == sketch.nest->spatial;
}

/// One sketch for each axis that can become vectors, the most promising first.
std::vector<TileSketch> tile_sketches(const AnchorNest& nest, bool has_prologue,
                                      const Target& target);

/// The same on an instruction of the target that adds up groups of narrow numbers, for each axis
/// that can be its lanes; none where no instruction fits or the last reduction has no whole groups.
std::vector<TileSketch> dot_sketches(const Program& program, const AnchorNest& nest,
                                     bool has_prologue, const Target& target);

/// The same on tiles of a matrix unit that the target has for this sum, where the axes that a tile
/// needs are there, padded to whole ones if need be; at most one.
///
///   blocks | tiles, or the panels of lanes outside | rows, lanes | reductions, steps, terms
std::vector<TileSketch> unit_sketches(const Program& program, const AnchorNest& nest,
                                      bool has_prologue, const Target& target);

/// Copies of the operand are in the order in which tiles read it: cut along the vector axis, or
/// along an axis with a register tile. Other copies are as the operand lies.
bool is_reordered(const TileSketch& sketch, const Operand& o);

/// Declares the sketch's knobs and answers with a plan.
TilePlan choose_tiles(const TileSketch& sketch, const Target& target, Knobs& knobs);

/// Carries the plan out on an unscheduled program.
void apply_tiles(Schedule& s, const TileSketch& sketch, const TilePlan& plan);

}  // namespace tenon
