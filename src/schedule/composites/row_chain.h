#pragma once
#include <tenon/schedule/schedule.h>

#include <map>
#include <string>
#include <vector>

namespace tenon {

/// The register tile of a product in a chain: rows by vectors of its last axis.
struct ProductTile {
  int64_t rows = 1, vectors = 1;
};

struct RowOptions {
  bool lanes = true;     ///< reductions run in vectors
  bool streams = false;  ///< what is stored last goes past the caches
  /// Sums along neighbours in memory are cut into so many partial sums side by side, which vectors
  /// add up; 0: stay as they are.
  int64_t parts = 0;
  int64_t map_vectors = 2;  ///< in one iteration of a map's innermost loop
  bool apart = false;       ///< each stage by itself, with loops of its own
  int64_t block = 0;        ///< rows that are computed together; 0: one
  std::map<std::string, ProductTile> products = {};  ///< stages that have tiles in such a block
  std::vector<std::string> placed = {};              ///< stages that are left as they are
};

/// Chains of reductions along the same rows: everything of a row is computed inside its loop.
///   max(i), e(i,j), sum(i), y(i,j)   ->   for i parallel: max; e in vectors; sum; y in vectors
/// Where products are among them, everything of a block of rows:
///   s(i,j), max(i), e(i,j), y(i,c)   ->   for i.o parallel: s in tiles; max; e; y in tiles
void schedule_rows(Schedule& s, const RowOptions& options);

}  // namespace tenon
