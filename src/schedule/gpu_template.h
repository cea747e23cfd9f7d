#pragma once
#include <tenon/schedule/schedule.h>

namespace tenon {

/// Spreads one nest over a GPU: its outer spatial loops, fused, become blocks of so many threads,
/// and a reduction accumulates in a register. What cannot be bound stays with one thread.
void bind_nest(Schedule& s, const std::string& stage, int64_t threads);

}  // namespace tenon
