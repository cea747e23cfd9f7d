#pragma once
#include <tenon/ir/visit.h>
#include <tenon/target/target.h>

namespace tenon {

/// Throws Refusal where a loop marked tensorize is no longer what its intrinsic computes. `all`: the
/// program's stage_paths().
void check_tensorized(const Program& program, const std::vector<StagePath>& all,
                      const Target& target);

}  // namespace tenon
