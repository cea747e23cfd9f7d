#pragma once
#include "autotvm/sketch/multi_level_tile.h"

namespace tenon {

/// The knobs of a sketch on a matrix unit, without requirements (plan_knobs.h).
TilePlan read_unit_plan(const TileSketch& sketch, Knobs& knobs);

/// What fits the unit's registers.
void require_unit_fit(Knobs& knobs);

}  // namespace tenon
