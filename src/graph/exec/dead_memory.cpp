#include <optional>

#include "graph/exec/network_state.h"

namespace tenon {

namespace {

using Place = MemoryPlan::Place;

/// Steps write or read the value; `last` is the last of them, or nothing when an output is copied
/// out of it after all of them.
std::vector<std::optional<size_t>> last_steps(const Network::State& state) {
  std::vector<std::optional<size_t>> last(state.graph.values.size());
  for (size_t s = 0; s < state.steps.size(); ++s)
    for (ValueId root : state.steps[s].arguments) last[static_cast<size_t>(root)] = s;
  for (ValueId id : state.graph.outputs)
    last[static_cast<size_t>(state.plan.homes[static_cast<size_t>(id)].root)] = std::nullopt;
  return last;
}

}  // namespace

void mark_dead_memory(Network::State& state) {
  const std::vector<std::optional<size_t>> last = last_steps(state);
  for (size_t id = 0; id < last.size(); ++id) {
    const MemoryPlan::Home& home = state.plan.homes[id];
    if (!last[id] || home.place != Place::arena) continue;
    const Value& value = state.graph.values[id];
    const int64_t bytes = element_count(value.shape()) * byte_size(*value.type);
    state.steps[*last[id]].dead.push_back(
        {static_cast<std::byte*>(state.arena.raw()) + home.offset, static_cast<size_t>(bytes)});
  }
}

}  // namespace tenon
