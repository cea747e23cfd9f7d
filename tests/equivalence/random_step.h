#pragma once
#include <tenon/schedule/schedule.h>
#include <tenon/support/rng.h>

namespace tenon {

/// A step on stages and loops that exist, legal or not.
Primitive random_step(const Schedule& s, Rng& rng);

}  // namespace tenon
