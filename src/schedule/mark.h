#pragma once
#include "schedule/tree.h"

namespace tenon {

/// The program with the loop marked.
Program with_mark(const Program& program, const Var& loop, LoopMark mark);

/// The program with a note on the loop.
Program with_note(const Program& program, const Var& loop, const std::string& key, int64_t value);

/// How the loop is marked, or a note of it other than "partition"; empty where it is not.
std::string mark_text(const For& loop);

// The checks after every step; `all` are the program's stage_paths().

/// Refuses where a buffer that a loop is to double-buffer is not, or no longer, allocated and
/// filled as DoubleBuffer's rule says.
void check_double_buffers(const std::vector<StagePath>& all);

/// Refuses where the unrolled loops round a stage make more than 1024 copies of it: a stage can also
/// be moved into unrolled loops, or an unrolled loop grow.
void check_copies(const std::vector<StagePath>& all);

/// Refuses a loop that already has another mark.
void check_unmarked(const StagePath& path, size_t at, LoopMark wanted);

/// Refuses loops that run a reduction of a stage under them, and iterations that meet on an
/// element.
void check_iterations(const StagePath& path, size_t at, std::string_view primitive);

}  // namespace tenon
