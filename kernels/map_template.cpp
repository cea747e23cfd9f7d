#include <tenon/ir/visit.h>

#include "kernels/nests.h"
#include "kernels/templates.h"

namespace tenon {
namespace {

/// The loop along which the last stage's input is contiguous, when that is not the last one: the
/// stage transposes.
std::string contiguous_loop(const Program& program) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  const StagePath& path = paths.back();
  const Stage& s = *path.stage;
  std::string found;
  for (const Expr& value : s.values)
    walk(value, [&](const Expr& e) {
      const Load* l = e.as<Load>();
      const VarRef* last = l && !l->indices.empty() ? l->indices.back().as<VarRef>() : nullptr;
      for (size_t n = 0; last && n + 1 < s.axes.size(); ++n)
        if (s.axes[n].axis.var.same_as(last->var)) found = path.loops[n]->var.name();
      return true;
    });
  return found;
}

/// for i: .. for j: y(i,j) = x(j,i)   ->   for i.o: .. for j.o: for i.i: for j.i vectorize: one
/// block of both tensors
void transpose_blocks(Schedule& s, const std::string& stage, const std::string& across,
                      int64_t block) {
  std::vector<Loop> outer;
  std::vector<LoopRef> order;
  Loop inner_row;
  for (const Loop& loop : s[stage].loops()) {
    if (loop.name != across) {
      outer.push_back(loop);
      continue;
    }
    const auto [o, i] = s[stage].split(loop, block);
    outer.push_back(o);
    inner_row = i;
  }
  const auto [o, i] = s[stage].split(outer.back(), block);
  outer.back() = o;
  order.assign(outer.begin(), outer.end());
  order.insert(order.end(), {inner_row, i});
  s[stage].reorder(order);
  fuse_and_parallel(s, stage, outer);
  s[stage].vectorize(i, {Tail::mask});
}

}  // namespace

/// a = f(x); b = g(a)   ->   b = g(f(x)) in vectors along the last axis, the outer loops in
/// parallel
void map_template(Schedule& s, Knobs& knobs) {
  const int64_t vectors = knobs.pick("vectors", {1, 2, 4, 8}, 2);
  const int64_t block = knobs.pick("block", {8, 16, 32, 64}, 16);
  const std::vector<std::string> all = s.stages();
  for (const std::string& stage : all)
    if (stage != all.back()) s.try_apply(ComputeInline{stage});
  const std::string across = contiguous_loop(s.program());
  for (const std::string& stage : s.stages())
    if (stage == all.back() && !across.empty())
      transpose_blocks(s, stage, across, block);
    else
      schedule_root_map(s, stage, vectors);
}

}  // namespace tenon
