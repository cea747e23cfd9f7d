#pragma once
#include "schedule/tree.h"

namespace tenon {

/// Which accesses of a reduction to its own output may meet in different iterations of one of its
/// reduction loops.
enum class Accumulation : uint8_t { conflicts, allowed };

/// Can two different iterations of the loop at `path.loops[at]`, at one iteration of the loops
/// outside it, touch a common element that one of them writes? In words why that cannot be
/// excluded, or nothing when it is proved impossible. Buffers allocated inside the loop are private
/// to an iteration. With Accumulation::allowed a reduction or scan over this loop does not conflict
/// with itself; the caller sees to the order where its combiner does not commute and of scans.
std::optional<std::string> conflict_between_iterations(const StagePath& path, size_t at,
                                                       Accumulation accumulation);

/// The same for one buffer only; null buffer: all.
std::optional<std::string> conflict_on_buffer(const StagePath& path, size_t at,
                                              const Buffer& buffer);

/// The same for the loops from path.loops[first] to path.loops[last], which have nothing between
/// them: the first of them, from the outside, whose iterations may conflict.
struct NestConflict {
  size_t loop = 0;
  std::string why;
};
std::optional<NestConflict> conflict_in_nest(const StagePath& path, size_t first, size_t last,
                                             Accumulation accumulation);

}  // namespace tenon
