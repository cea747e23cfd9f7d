#pragma once
#include <tenon/schedule/schedule.h>

#include <string>
#include <vector>

namespace tenon {

/// The sum `sum` of stage `anchor` in registers under `tile_loop`, and the maps after it at the
/// tile's end: on the registers where their lanes agree, else on a copy in memory. Adds the stages
/// to `done`; returns how many of those are vectors of the tile.
size_t place_sum(Schedule& s, const std::string& anchor, const std::string& sum,
                 const Loop& tile_loop, std::vector<std::string>& done);

}  // namespace tenon
