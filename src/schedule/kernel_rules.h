#pragma once
#include "schedule/tree.h"

namespace tenon {

/// What holds for every program on a GPU: each nest at the root is a kernel, block loops outermost,
/// thread loops inside them; memory that threads share is allocated outside thread loops and what
/// each has for itself is touched by one thread only; the device's limits. Throws Refusal. Checked
/// after each step, whatever it was.
void check_kernels(const Program& program, const Target& target);

/// Refuses shared and local memory where the target has none; `loop` is marked in the message.
void check_scope(const Target& target, Scope scope, const std::string& loop);

}  // namespace tenon
