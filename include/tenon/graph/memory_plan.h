#pragma once
#include <tenon/graph/groups.h>

#include <cstdint>
#include <vector>

namespace tenon {

/// A buffer that is live from step `first` (which writes it) to step `last` (the last that reads
/// it), both inclusive.
struct BufferLife {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // one per buffer
  int64_t bytes = 0;             // of the whole arena
};

/// Places buffers in one arena so that no two that live at one step overlap. Greedy: the largest
/// first, each into the smallest gap between those placed already and live with it that holds it,
/// at the end when there is none. Offsets are multiples of `alignment`. Deterministic.
ArenaLayout place_buffers(const std::vector<BufferLife>& buffers, int64_t alignment = 64);

/// Where each value of a grouped graph lives.
struct MemoryPlan {
  enum class Place : uint8_t { nowhere, input, constant, arena, output };
  struct Home {
    Place place = Place::nowhere;
    int64_t offset = 0;      // in the arena, bytes
    ValueId root = kAbsent;  // the value whose memory it is: itself, or what it is a view of
  };
  std::vector<Home> homes;  // per value of the graph; nowhere: inside of a group
  int64_t arena_bytes = 0;
};

/// Lifetimes over the order of the groups, then place_buffers. A view has its input's home. A group
/// that makes a graph output writes into the caller's array.
MemoryPlan plan_memory(const Graph& graph, const std::vector<Group>& groups);

}  // namespace tenon
