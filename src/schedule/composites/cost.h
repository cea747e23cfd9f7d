#pragma once
#include <cstdint>

namespace tenon {

// What the closed-form models of the templates share: how an extent falls into tiles, and what one
// core gets from its memories. Measured on one server CPU with a private second cache; only the
// ratios of estimates decide.

/// Bytes a cycle from beyond the second cache where lines are read in order, from the second cache
/// in order, and from it in pieces of rows, which no prefetcher foresees.
constexpr double kFarBytes = 7, kNearBytes = 30, kPieceBytes = 24;
/// From beyond the second cache where the prefetchers follow none of the many rows, and from the
/// second cache where all rows fall into the same sets of the first.
constexpr double kMissBytes = 4.5, kConflictBytes = 20;

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
