#pragma once
#include "schedule/dependence.h"

namespace tenon {

/// Whether the indices alone show that no two iterations of the loop path.loops[at] meet: each
/// buffer from outside it is written by one stage only, at a sum of loops in which each coefficient
/// is more than the smaller ones together reach (i.o*16 + i.i), and nothing under the loop reads
/// it. A quick test before the one that proves more: false says nothing.
bool writes_lie_apart(const StagePath& path, size_t at, Accumulation accumulation);

}  // namespace tenon
