#pragma once
#include <tenon/target/target.h>

#include <cstdint>

namespace tenon {

/// What one core gets from its memories: constants of the closed-form models, bytes a cycle. Their
/// cycle is the time in which two vector multiply-adds start; where a processor needs two turns for
/// vectors of its full width, that is two of its own. Only the ratios of estimates decide.
struct MemoryRates {
  double far;     ///< from beyond the second cache, lines in order
  double miss;    ///< the same where the prefetchers follow none of the many rows
  double line;    ///< the same, of single lines, which wait for each other
  double memory;  ///< from beyond the third cache
  /// From the second cache: in order; in pieces of rows, which no prefetcher foresees; where all
  /// rows fall into the same sets of the first. Measured where vectors take one turn; where they
  /// take two the same numbers order programs as well as twice as large ones.
  double near = 30, piece = 24, conflict = 20;
};

/// Measured on server CPUs with private second caches.
inline MemoryRates memory_rates(const Target& target) {
  const double turns = 2.0 / target.vector_fmas, far = target.far_bytes * turns;
  return {far, far * 4.5 / 7, 3 * turns, 4 * turns};
}

/// Pages that may be open at once before translations fall out of the first TLB.
constexpr double kOpenPages = 64;
constexpr int64_t kPage = 4096;

}  // namespace tenon
