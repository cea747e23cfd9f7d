#pragma once
#include <cstdint>

#include "target/cost.h"

namespace tenon {

// What the closed-form models of the templates share, beside what one core gets from its memories
// (target/cost.h): how an extent falls into tiles.

/// How far ahead lines are asked for that are read in order, or about in order: some 16 are on
/// their way at a time.
constexpr int64_t kAheadBytes = 1024;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Calls f(count, tile) for the full tiles and the rest of an extent.
template <class F>
void each_tile(int64_t extent, int64_t tile, F&& f) {
  if (extent / tile > 0) f(static_cast<double>(extent / tile), tile);
  if (extent % tile > 0) f(1.0, extent % tile);
}

}  // namespace tenon
