#include "random_gpu_step.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include "tests/fuzz/random_step.h"

namespace tenon {
namespace {

template <class T>
const T& one_of(const std::vector<T>& all, Rng& rng) {
  return all[static_cast<size_t>(rng.below(static_cast<int64_t>(all.size())))];
}

ThreadAxis random_axis(bool block, Rng& rng) {
  const auto first = static_cast<int64_t>(block ? ThreadAxis::block_x : ThreadAxis::thread_x);
  return static_cast<ThreadAxis>(first + rng.below(3));
}

/// Blocks from the outside in, threads anywhere.
Primitive random_bind(const StagePath& path, Rng& rng) {
  const std::string& stage = path.stage->name;
  if (path.loops.empty()) return Bind{stage, "i", random_axis(false, rng)};
  for (size_t n = 0; n + 1 < path.loops.size(); ++n)  // often refused: lanes are no threads
    if (makes_lanes(path.loops[n]->mark) && rng.chance(0.5))
      return Bind{stage, path.loops[n + 1]->var.name(), random_axis(false, rng)};
  size_t bound = 0;
  while (bound < path.loops.size() && is_block(path.loops[bound]->mark)) ++bound;
  if (bound + 1 < path.loops.size() && rng.chance(0.4))
    return Bind{stage, path.loops[bound]->var.name(), random_axis(true, rng)};
  return Bind{stage, one_of(path.loops, rng)->var.name(), random_axis(false, rng)};
}

Scope random_scope(Rng& rng) {
  const Scope all[] = {Scope::shared, Scope::shared, Scope::local, Scope::reg, Scope::global};
  return all[rng.below(5)];
}

Primitive random_set_scope(const Schedule& s, const StagePath& path, Rng& rng) {
  std::vector<std::string> buffers;
  walk(
      s.program().body,
      [&](const Stmt& x) {
        if (const Allocate* n = x.as<Allocate>()) buffers.push_back(n->buffer->name);
        return true;
      },
      nullptr);
  return SetScope{buffers.empty() ? path.stage->outputs[0]->name : one_of(buffers, rng),
                  random_scope(rng)};
}

}  // namespace

Primitive random_gpu_step(const Schedule& s, Rng& rng) {
  const std::vector<StagePath> stages = stage_paths(s.program().body);
  const StagePath& path = one_of(stages, rng);
  if (rng.chance(0.35)) return random_bind(path, rng);
  if (rng.chance(0.15)) return random_set_scope(s, path, rng);
  Primitive step = random_step(s, rng);
  while (std::holds_alternative<Parallel>(step)) step = random_step(s, rng);
  if (CacheRead* n = std::get_if<CacheRead>(&step); n && rng.chance(0.4)) n->scope = Scope::shared;
  return step;
}

}  // namespace tenon
