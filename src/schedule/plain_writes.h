#pragma once
#include "schedule/dependence.h"

namespace tenon {

/// Whether the indices alone show that no two iterations of a loop meet, for each of the loops
/// from path.loops[first] to path.loops[last], which have nothing between them: each buffer from
/// outside them is written by one stage only, at a sum of loops in which each coefficient is more
/// than the smaller ones together reach (i.o*16 + i.i), and nothing inside reads it. Loops of a tree
/// begin at 0 (ir/stmt.h). A quick test before the one that proves more: false says nothing.
bool writes_lie_apart(const StagePath& path, size_t first, size_t last, Accumulation accumulation);

}  // namespace tenon
