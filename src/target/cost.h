#pragma once
#include <cstdint>

namespace tenon {

// What one core gets from its memories: constants of the closed-form models. Measured on one server
// CPU with a private second cache; only the ratios of estimates decide.

/// Bytes a cycle from beyond the second cache where lines are read in order, from the second cache
/// in order, and from it in pieces of rows, which no prefetcher foresees.
constexpr double kFarBytes = 7, kNearBytes = 30, kPieceBytes = 24;
/// From beyond the second cache where the prefetchers follow none of the many rows, and from the
/// second cache where all rows fall into the same sets of the first.
constexpr double kMissBytes = 4.5, kConflictBytes = 20;

/// Pages that may be open at once before translations fall out of the first TLB.
constexpr double kOpenPages = 64;
constexpr int64_t kPage = 4096;

}  // namespace tenon
