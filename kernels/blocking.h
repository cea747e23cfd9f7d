#pragma once
#include "kernels/contraction.h"

namespace tenon {

/// Steps that are written out: the processor fetches ahead by the distance of one load's addresses,
/// so a panel from the second cache arrives in time only where each load passes over several steps.
constexpr int64_t kSteps = 4;

/// How a matrix product C[m, n] += W[m, k] * X[k, n] is cut, from the outside in:
///   pieces of the rows, blocks of X's columns (shared by the threads)
///     blocks of k            -> a block of X, k_block x panels tiles, packed or read in place
///       tiles of rows        -> rows x k_block of W stay in the first cache
///         tiles of columns   -> a panel of X streams from the second cache
///           k_block steps on a register tile
/// or, with panels outside, where X comes packed or, in blocks of k, is read in place:
///   pieces of the rows, blocks of X's columns (shared by the threads)
///     blocks of k
///     tiles of columns       -> a panel of X stays in the second cache; the next is fetched
///     meanwhile
///       tiles of rows        -> W streams from the second cache
///         all steps on a register tile
struct Blocking {
  RegisterTile tile;
  int64_t k_block = 0;     ///< steps before C is put back; 0: all
  int64_t panels = 0;      ///< column tiles in a block of X; 0: all
  int64_t row_pieces = 1;  ///< pieces of the rows that run in parallel
  bool packed = false;     ///< the block of X is copied, tile by tile
  bool panels_outside = false;
  bool operator==(const Blocking&) const = default;
};

/// A plain (batched) matrix product: rows (or none: a vector times a matrix, the sums of columns),
/// one vector axis and one reduction.
bool is_matrix_product(const Contraction& c);

/// Estimated cycles of the busiest core: what tile_cycles() counts for each step, the ends of the
/// tiles once a block of k, and the traffic of X, W and C beyond the second cache. `ahead`: X comes
/// packed.
double blocked_cycles(const Contraction& c, const Blocking& b, const Target& target, bool ahead);

/// The blocking of least estimated cycles.
Blocking best_blocking(const Contraction& c, const Target& target, bool ahead);

/// The same for a matrix unit with eight tiles of `side` rows and columns, where X comes in panels
/// of groups: two by two tiles of sums, or one row or column of them; columns so that the block of
/// X fits half of the second cache. Where all of W fits it and X, packed ahead, does not, panels of
/// X pass by once while W stays. The cores share rows or columns, which there are more of.
/// tile.vectors counts tiles of columns.
Blocking tile_blocking(const Contraction& c, const Target& target, int64_t side, bool ahead);

}  // namespace tenon
