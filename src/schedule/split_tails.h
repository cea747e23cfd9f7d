#pragma once
#include "schedule/tree.h"

namespace tenon {

/// Refuses tiles of `factor` iterations of path.loops[at] whose last one is shifted inward, where
/// computing its elements again would change a result.
void check_shift(const Program& program, const StagePath& path, size_t at, int64_t factor);

/// For a loop that gets iterations up to `extent` without a guard: the buffers written there, and
/// what each becomes with its dimension of the loop rounded up. Refuses where an iteration added
/// would write an output, or read what does not exist or was not written.
BufferMap padded_buffers(const Program& program, const StagePath& path, size_t at, int64_t extent);

/// `root` on the rounded-up buffers, the axes that run along them with their extents.
Stmt with_padded_buffers(const Stmt& root, const BufferMap& buffers);

}  // namespace tenon
