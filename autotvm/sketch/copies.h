#pragma once
#include <string>
#include <vector>

#include "autotvm/sketch/multi_level_tile.h"

namespace tenon {

// How copies of what the anchor reads are laid out and made.

/// The copy's layout: the axis that tiles run along cut by their width, its pieces outside, the
/// elements of one innermost. Empty: as the operand lies.
struct Packing {
  std::vector<LayoutDim> layout;
  size_t dim = 0;
  int64_t width = 1;
  size_t terms_dim = 0;  // where one element is a group of terms
  int64_t group = 1;
  bool turned = false;  // only another order of the dimensions: `dim` last
  bool across = false;  // lanes lie across the operand's rows, which are read in order
};

Packing packing_of(const TileSketch& sketch, const TilePlan& plan, const Operand& o,
                   const Target& target);

/// Makes the copy in vectors: along the rows of the operand where the cut dimension is its last,
/// else along the copy's.
void finish_copy(Schedule& s, const std::string& copy, std::vector<Loop> loops, const Packing& p,
                 bool at_root);

}  // namespace tenon
