#include <tenon/graph/memory_plan.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "graph/onnx/operators.h"
#include "graph/passes/constants.h"

namespace tenon {

namespace {

using Home = MemoryPlan::Home;
using Place = MemoryPlan::Place;

/// Inputs, constants and group outputs are roots; a view has the root of what it views.
std::vector<Home> assign_roots(const Graph& graph, const std::vector<Group>& groups) {
  std::vector<Home> homes(graph.values.size());
  const auto set = [&](ValueId id, Place place) {
    homes[static_cast<size_t>(id)] = {place, 0, id};
  };
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].constant) set(static_cast<ValueId>(i), Place::constant);
  for (ValueId id : graph.inputs) set(id, Place::input);
  for (const Group& group : groups) set(group.output, Place::arena);
  for (const Node& node : graph.nodes)  // in order, so that a view of a view finds its root
    if (operator_of(node).kind == OperatorKind::view)
      homes[static_cast<size_t>(node.outputs[0])] = homes[static_cast<size_t>(node.inputs[0])];
  // A graph output that a group writes needs no place of its own, unless two outputs are one
  // memory.
  for (ValueId id : graph.outputs) {
    Home& home = homes[static_cast<size_t>(id)];
    if (home.root == id && home.place == Place::arena) home.place = Place::output;
  }
  for (Home& home : homes)
    if (home.root != kAbsent) home.place = homes[static_cast<size_t>(home.root)].place;
  return homes;
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const std::vector<Group>& groups) {
  MemoryPlan plan{assign_roots(graph, groups), 0};
  std::vector<BufferLife> lives;
  std::vector<int> life_of(graph.values.size(), -1);
  const int end = static_cast<int>(groups.size());
  const auto read_at = [&](ValueId id, int step) {
    const Home& home = plan.homes[static_cast<size_t>(id)];
    if (home.place != Place::arena) return;
    BufferLife& life = lives[static_cast<size_t>(life_of[static_cast<size_t>(home.root)])];
    life.last = std::max(life.last, step);
  };
  for (int step = 0; step < end; ++step) {
    const Group& group = groups[static_cast<size_t>(step)];
    for (ValueId id : group.inputs) read_at(id, step);
    const Value& out = graph.value(group.output);
    if (plan.homes[static_cast<size_t>(group.output)].place != Place::arena) continue;
    life_of[static_cast<size_t>(group.output)] = static_cast<int>(lives.size());
    lives.push_back({checked_bytes(*out.type, out.shape(), out.name), step, step});
  }
  for (ValueId id : graph.outputs)
    read_at(id, end);  // views that are outputs are copied out at the end
  const ArenaLayout layout = place_buffers(lives);
  for (Home& home : plan.homes)
    if (home.place == Place::arena)
      home.offset = layout.offsets[static_cast<size_t>(life_of[static_cast<size_t>(home.root)])];
  plan.arena_bytes = layout.bytes;
  return plan;
}

}  // namespace tenon
