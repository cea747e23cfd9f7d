#pragma once
#include <tenon/schedule/schedule.h>

namespace tenon {

struct MapOptions {
  int64_t vectors = 2;   ///< in one iteration of the innermost loop
  int64_t block = 32;    ///< a transposition: elements of the result's rows in one block
  bool peeled = false;   ///< loops are cut where another element is chosen
  bool streams = false;  ///< what is stored last goes past the caches
};

/// What suits the program, in closed form.
MapOptions standard_maps(const Program& program, const Target& target);

/// A program without reductions: everything that can be is inlined; vectors along the last axis,
/// the outer loops in parallel.
///   a = f(x); b = g(a)   ->   b = g(f(x))
void schedule_maps(Schedule& s, const MapOptions& options);

}  // namespace tenon
