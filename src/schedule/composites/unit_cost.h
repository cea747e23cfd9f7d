#pragma once
#include <algorithm>
#include <cstdint>

namespace tenon {

// What a product of tiles costs on a matrix unit: the closed form that templates, sketches and the
// draft score share.

/// Cycles of one product of tiles; short ones are hardly faster, and only where each tile of lanes
/// serves several of rows (measured).
inline double unit_dot_cycles(int64_t rows, int64_t lane_tiles) {
  return lane_tiles > 1 ? 16 : 9 + 7 * static_cast<double>(rows) / 16;
}

/// Cycles of a step of a nest: row_tiles tiles of `rows` rows by lane_tiles tiles of lanes. Its
/// products or its loads, of which each line takes half a cycle, and a little for each load.
inline double unit_step_cycles(int64_t row_tiles, int64_t rows, int64_t lane_tiles) {
  const double loads = static_cast<double>(row_tiles * rows + 16 * lane_tiles) / 2;
  const double products = static_cast<double>(row_tiles * lane_tiles);
  return std::max(products * unit_dot_cycles(rows, lane_tiles), loads) + 0.3 * loads;
}

/// Cycles to start and store the sums of a nest.
inline double unit_end_cycles(int64_t row_tiles, int64_t rows, int64_t lane_tiles) {
  return static_cast<double>(3 * row_tiles * rows * lane_tiles + 60);
}

}  // namespace tenon
