#include <tenon/ir/visit.h>
#include <tenon/schedule/roles.h>

#include <algorithm>
#include <set>

#include "arith/interval.h"
#include "schedule/tree.h"

namespace tenon {
namespace {

/// All stages that `from` reads from (forward: that read from it), directly or through others.
std::set<std::string> reach(const std::vector<StagePath>& stages, const std::string& from,
                            bool forward) {
  std::set<std::string> seen;
  std::vector<std::string> todo = {from};
  while (!todo.empty()) {
    const std::string name = todo.back();
    todo.pop_back();
    for (const StagePath& a : stages) {
      if (a.stage->name != name) continue;
      for (const StagePath& b : stages) {
        const Stage &source = forward ? *a.stage : *b.stage, &sink = forward ? *b.stage : *a.stage;
        const bool linked = std::any_of(source.outputs.begin(), source.outputs.end(),
                                        [&](const Buffer& o) { return reads(sink, o); });
        if (linked && b.stage->name != from && seen.insert(b.stage->name).second)
          todo.push_back(b.stage->name);
      }
    }
  }
  return seen;
}

int64_t points_of(const Stage& stage) {
  int64_t out = 1;
  for (const AxisBinding& b : stage.axes) {
    const std::optional<int64_t> n = bounds(b.axis.extent).max;
    if (!n || __builtin_mul_overflow(out, *n, &out)) return 0;
  }
  return out;
}

bool is_map_of_own_buffer(const Program& program, const Stage& stage) {
  return !stage.combiner && std::none_of(stage.outputs.begin(), stage.outputs.end(),
                                         [&](const Buffer& b) { return is_output(program, b); });
}

}  // namespace

Roles roles(const Program& program) {
  const std::vector<StagePath> stages = stage_paths(program.body);
  Roles out;
  int64_t most = -1;
  for (const StagePath& p : stages) {
    const int64_t points = p.stage->combiner ? points_of(*p.stage) : -1;
    if (points > most) {
      most = points;
      out.anchor = p.stage->name;
    }
  }
  if (out.anchor.empty() && !stages.empty()) out.anchor = stages.back().stage->name;
  const std::set<std::string> before = reach(stages, out.anchor, false),
                              after = reach(stages, out.anchor, true);
  for (const StagePath& p : stages) {
    const std::string& name = p.stage->name;
    if (name == out.anchor) continue;
    (before.count(name)  ? out.prologue
     : after.count(name) ? out.epilogue
                         : out.others)
        .push_back(name);
  }
  return out;
}

int64_t most_iterations(const For& loop) { return bounds(loop.extent).max.value_or(0); }

int64_t stage_points(const Program& program, const std::string& stage) {
  return points_of(*find_stage(program, stage).stage);
}

int inline_prologue(Schedule& s) {
  int count = 0;
  for (const std::string& name : roles(s.program()).prologue) {
    const StagePath path = find_stage(s.program(), name);
    if (is_map_of_own_buffer(s.program(), *path.stage) && !s.try_apply(ComputeInline{name}))
      ++count;
  }
  return count;
}

std::vector<std::string> fuse_epilogue(Schedule& s, const Loop& tile_loop) {
  const std::vector<StagePath> stages = stage_paths(s.program().body);
  const StagePath anchor = find_stage(s.program(), tile_loop.stage);
  const For* loop = anchor.loops[find_loop(anchor, tile_loop.name)];
  const std::set<std::string> after = reach(stages, tile_loop.stage, true);
  std::vector<std::string> chain, placed;
  for (const StagePath& p : stages) {
    const bool inside = std::find(p.loops.begin(), p.loops.end(), loop) != p.loops.end();
    if (after.count(p.stage->name) && !inside) chain.push_back(p.stage->name);
  }
  for (size_t n = 0; n < chain.size(); ++n) {
    const StagePath path = find_stage(s.program(), chain[n]);
    const bool last = n + 1 == chain.size();
    if (!last && is_map_of_own_buffer(s.program(), *path.stage) &&
        !s.try_apply(ComputeInline{chain[n]}))
      continue;
    if (s.try_apply(ReverseComputeAt{chain[n], tile_loop.stage, tile_loop.name})) break;
    placed.push_back(chain[n]);
  }
  return placed;
}

}  // namespace tenon
