#pragma once
#include <tenon/schedule/knobs.h>
#include <tenon/target/target.h>

#include <vector>

namespace tenon {

/// Templates that rules write for any formula, with no template of its own, by the shape of its
/// stages: what tune() searches beside the task's templates. Names begin with "sketch.". None for
/// a program of which no rule knows more than the generic template does, and for GPUs.
std::vector<NamedTemplate> sketches_for(const Program& program, const Target& target);

}  // namespace tenon
