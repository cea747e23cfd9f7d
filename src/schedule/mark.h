#pragma once
#include "schedule/tree.h"

namespace tenon {

/// The program with the loop marked.
Program with_mark(const Program& program, const Var& loop, LoopMark mark);

/// Refuses a loop that already has another mark.
void check_unmarked(const StagePath& path, size_t at, LoopMark wanted);

/// Refuses loops that run a reduction of a stage under them, and iterations that meet on an
/// element.
void check_iterations(const StagePath& path, size_t at, std::string_view primitive);

}  // namespace tenon
