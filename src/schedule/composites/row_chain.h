#pragma once
#include <tenon/schedule/schedule.h>

namespace tenon {

struct RowOptions {
  bool lanes = true;     ///< reductions run in vectors
  bool streams = false;  ///< what is stored last goes past the caches
  /// Sums along neighbours in memory are cut into so many partial sums side by side, which vectors
  /// add up; 0: stay as they are.
  int64_t parts = 0;
  int64_t map_vectors = 2;  ///< in one iteration of a map's innermost loop
  bool apart = false;       ///< each stage by itself, with loops of its own
};

/// Chains of reductions along the same rows: everything of a row is computed inside its loop.
///   max(i), e(i,j), sum(i), y(i,j)   ->   for i parallel: max; e in vectors; sum; y in vectors
void schedule_rows(Schedule& s, const RowOptions& options);

}  // namespace tenon
