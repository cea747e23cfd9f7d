#pragma once
#include <vector>

#include "autotvm/sketch/multi_level_tile.h"

namespace tenon {

// Knobs that sketches on vectors and on matrix units share.

/// How many blocks the axis may be cut into: the sizes that there are tiles for.
std::vector<int64_t> piece_counts(const TileSketch& sketch, size_t axis);
int64_t pick_pieces(const TileSketch& sketch, size_t axis, Knobs& knobs);

/// What TilePlan::pack may be for the operand.
std::vector<std::string> pack_words(const TileSketch& sketch, const Operand& o);

/// The places of the operands and of the maps before the sum, added to the plan.
void pick_copies(const TileSketch& sketch, Knobs& knobs, TilePlan& plan);

/// All knobs of the sketch, without its requirements.
TilePlan read_plan(const TileSketch& sketch, const Target& target, Knobs& knobs);

}  // namespace tenon
