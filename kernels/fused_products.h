#pragma once
#include "kernels/contraction.h"

namespace tenon {

/// A stage ahead of the second of two products; its first dimensions are those of the rows.
struct FusedStage {
  std::string name, buffer;
  bool columns = false;  // it has one dimension more
  bool reduces = false;
  bool across = false;  // a map that reads an operand whose neighbours lie along the columns
  bool before = false;  // it feeds the rows of the first product
};

/// Two matrix products and stages between them that work row by row (attention):
///   first[.., i, j] = sum over c;  maps, sums and maxima of rows;
///   second[.., i, e] = sum over j of between[.., i, j] * V[.., j, e]
/// or, the columns in tiles,
///   second[.., i, t, e] = sum over r of between[.., i, t*n + r] * V[.., t*n + r, e];
///   fold[.., i, e] = what joins the tiles' maxima, sums and products over t
struct FusedProducts {
  Contraction first, second;        // the rows of the second are i
  size_t row_dims = 0;              // dimensions ahead of j and e; the last one is i
  std::vector<FusedStage> ahead;    // maps of the other operands, in order
  std::vector<FusedStage> between;  // maps of the rows, the first product and all that follow it
  std::string fold;                 // stage that joins the tiles of columns; empty: there are none
  LoopExtent tiles;                 // its reduction
};

/// Nothing for programs of another shape.
std::optional<FusedProducts> find_fused_products(const Program& program);

/// How the pair is cut: a block of rows at a time, whose scores stay in the cache.
struct FusedTiles {
  bool rows_in_lanes = true;  ///< the rows of a block are lanes until the second product
  int64_t vectors = 1;        ///< of the first product's tile; with rows in the lanes, of the block
  int64_t keys = 1;           ///< columns of the first product a tile, rows being the lanes
  int64_t rows = 1;  ///< of the second product's tile; with columns in the lanes, of the block
  int64_t value_vectors = 1;  ///< of the second product's tile
  bool operator==(const FusedTiles&) const = default;
  int64_t block(int64_t lanes) const;  ///< rows of a block
};

/// The tiles of least estimated cycles.
FusedTiles best_tiles(const FusedProducts& f, const Target& target);

}  // namespace tenon
