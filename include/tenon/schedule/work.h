#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

#include <string>

namespace tenon {

/// Cycles to hand a loop to the other cores and to wait for them, what they must fetch from the
/// caller's caches included. A fork-join to spinning workers alone is 0.7 us.
constexpr double kForkCycles = 4000;

/// Estimated cycles that one core needs for all stages inside the outermost loop round `stage`: for
/// each the longest of its arithmetic in vectors (two instructions a cycle, an elementary function
/// is twelve), what it reads and writes from the second cache, and its elements one by one where it
/// gathers. 0 where an extent is not bounded; symbolic ones count at their most.
double nest_cycles(const Program& program, const std::string& stage, const Target& target);

/// Do threads save more than they cost, when the outermost loop round `stage` runs as so many
/// pieces? Never on one core, and not for work of a few microseconds: that stays with the caller.
bool worth_threads(const Program& program, const std::string& stage, int64_t pieces,
                   const Target& target);

}  // namespace tenon
