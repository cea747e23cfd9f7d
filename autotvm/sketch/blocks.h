#pragma once
#include <optional>
#include <vector>

#include "autotvm/sketch/multi_level_tile.h"

namespace tenon {

// The block loops of a plan, before any step: what they move and what one iteration of them reads.

/// An axis of which each element is used once: it has a loop over its tiles outside all blocks.
bool is_batch(const TileSketch& sketch, size_t axis);

/// A loop at the block level.
struct BlockLoop {
  size_t axis = 0;
  int64_t count = 1;  ///< iterations
  int64_t range = 1;  ///< of the axis in one of them
};

/// From the outside in; loops of one iteration are left out, except of the axes that no operand is
/// used again along (batch), which all have a loop.
struct BlockLoops {
  std::vector<BlockLoop> loops;
  size_t leading = 0;  ///< spatial ones before the block of the reduction
  bool k_in_blocks = false;
};
BlockLoops block_loops_of(const TileSketch& sketch, const TilePlan& plan);

/// The block loop, of `loops`, that the operand's copy is made in: of those that move it the
/// innermost ("block") or the outermost of more than one iteration ("outer"). Nothing where none
/// moves it, and for other words.
std::optional<size_t> copy_block(const BlockLoops& blocks, const Operand& o,
                                 const std::string& pack);

/// Elements that all copies of the operand made in that block loop have together, over those of the
/// operand: what overlaps and what is made again counts each time. Nothing where an index is no
/// sum of steps.
std::optional<double> copied_share(const TileSketch& sketch, const BlockLoops& blocks,
                                   const Operand& o, size_t at);

}  // namespace tenon
