#pragma once
#include "autotvm/sketch/multi_level_tile.h"

namespace tenon {

// Maps before the sum (a border of zeros, a factor): computed as a whole, in the sum itself, or in
// the operands' copies, block by block.

/// Requirements on points: each place of an operand's copy that is another program, and none where
/// the maps are computed so often that it cannot pay.
void require_copies(const TileSketch& sketch, const Target& target, Knobs& knobs);

/// The standard plan of a sketch: an operand that does not stay in the second cache from where it
/// is computed to where it is used is computed at blocks whose part of it does.
void place_maps(TileSketch& sketch, const Target& target);

}  // namespace tenon
