#pragma once
#include <tenon/schedule/schedule.h>

#include "kernels/blocking.h"
#include "kernels/dot_product.h"

namespace tenon {

// Steps that the templates of matrix products share.

/// The loops of the product after blocking, from the outside in.
struct BlockedLoops {
  std::vector<Loop> shared;  // batch, pieces of rows, blocks of columns
  Loop block;                // one block of X stays the same inside it; no name: all of X does
  Loop tile;                 // the tile's loop
  Loop panel, k;             // over panels of X, and over k (in groups)
  Loop rows, vector;         // inside the tile; no name: no rows
};

/// What is innermost in a tile: the rows and columns of each step, or (`sums_outside`) all steps of
/// each element. `lanes`: columns of a vector; `group`: points of the reduction in one step, inside
/// everything.
struct TileShape {
  int64_t lanes = 1, group = 1;
  bool sums_outside = false;
};

/// Cuts the product as the blocking says.
BlockedLoops block_loops(Schedule& s, const Contraction& c, const Blocking& b,
                         const TileShape& shape);

/// Dimensions of X with the vector axis cut into panels: [n/width][..][k][width]; of groups,
/// [n/width][..][k/group][width][group].
std::vector<LayoutDim> panel_layout(const Contraction& c, const std::optional<DotProduct>& dots,
                                    int64_t width);

/// The copy of X in groups, `loops` being those of its dimensions: for each panel, the rows of a
/// group one after the other into the same lines.
void interleave(Schedule& s, const std::string& copy, const std::vector<Loop>& loops,
                const Contraction& c, const DotProduct& dots, int64_t width);

}  // namespace tenon
