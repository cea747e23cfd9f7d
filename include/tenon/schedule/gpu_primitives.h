#pragma once
#include <tenon/schedule/fields.h>

namespace tenon {

// Primitives for GPUs; see loop_primitives.h for their shape.

struct Bind {
  std::string stage, loop;
  ThreadAxis axis = ThreadAxis::thread_x;

  static constexpr std::string_view kName = "bind";
  static constexpr std::string_view kRule =
      "For targets with blocks of threads. A spatial loop of independent iterations (as for "
      "parallel), one axis once on a path. Block loops stand outermost, with nothing beside them, "
      "and are bound from the outside in; thread loops stand inside them. Where stages of one "
      "block have thread loops of other extents, or none, the spare threads idle, and barriers "
      "stand where one thread reads what another wrote. What is allocated outside thread loops is "
      "shared by the block (local and register: each thread has the part it touches); what is "
      "allocated inside them is a thread's own. Threads per block and blocks per axis are within "
      "the device's limits.";
  static constexpr std::string_view kBefore = "for x.o in 0..4\n  for x.i in 0..256: S(x)";
  static constexpr std::string_view kAfter =
      "bind(x.o, block_x), bind(x.i, thread_x):\n"
      "for x.o in 0..4  block_x\n  for x.i in 0..256  thread_x: S(x)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Bind::stage, "stage that names the loop"),
                      field("loop", &Bind::loop, "loop to spread over blocks or threads"),
                      field("axis", &Bind::axis, "axis of the grid or of a block"));
  }
  Program apply(const Program& program, const Target& target) const;
};

}  // namespace tenon
