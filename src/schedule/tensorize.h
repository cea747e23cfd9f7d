#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

namespace tenon {

/// Throws Refusal where a loop marked tensorize is no longer what its intrinsic computes.
void check_tensorized(const Program& program, const Target& target);

}  // namespace tenon
