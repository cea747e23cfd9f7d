#pragma once
#include <tenon/schedule/schedule.h>
#include <tenon/support/rng.h>

namespace tenon {

/// A step for a GPU, legal or not: half of them bind loops or place buffers, the others are those
/// of any target.
Primitive random_gpu_step(const Schedule& s, Rng& rng);

}  // namespace tenon
