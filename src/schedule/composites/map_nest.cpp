#include "schedule/composites/map_nest.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>

#include "ir/loads.h"
#include "schedule/composites/nests.h"

namespace tenon {
namespace {

/// The loop along which the last stage's input is contiguous, when that is not the last one and the
/// last one strides through it: the stage transposes. Positions that are read from memory (rows of
/// a table by their numbers) are no such input, nor is what stays the same along the last loop.
std::string contiguous_loop(const Program& program) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  const StagePath& path = paths.back();
  const Stage& s = *path.stage;
  std::string found;
  if (s.axes.empty()) return found;
  for (const Expr& value : s.values)
    walk(value, [&](const Expr& e) {
      const Load* l = e.as<Load>();
      if (!l) return true;
      const VarRef* last = l->indices.empty() ? nullptr : l->indices.back().as<VarRef>();
      const bool strides = std::any_of(l->indices.begin(), l->indices.end(), [&](const Expr& i) {
        return uses_var(i, s.axes.back().axis.var);
      });
      for (size_t n = 0; last && strides && n + 1 < s.axes.size(); ++n)
        if (s.axes[n].axis.var.same_as(last->var)) found = path.loops[n]->var.name();
      return false;
    });
  return found;
}

/// Of the stage's type, in one line of the caches.
int64_t line_elements(const Schedule& s, const std::string& stage) {
  for (const StagePath& path : stage_paths(s.program().body))
    if (path.stage->name == stage)
      return std::max<int64_t>(
          1, s.target().cache_line_bytes / byte_size(path.stage->outputs[0]->dtype));
  return 1;
}

/// for i: .. for j: y(i,j) = x(j,i)   ->   .. for j.o: for i.o: for i.i unroll: for j.i vectorize:
/// one line of x for each of the j.i rows, transposed in registers
void transpose_blocks(Schedule& s, const std::string& stage, const std::string& across,
                      int64_t block) {
  const std::vector<Loop> loops = s[stage].loops();
  const auto [row_blocks, row] = s[stage].split(Loop{stage, across}, line_elements(s, stage));
  const auto [blocks, column] = s[stage].split(loops.back(), block);
  std::vector<Loop> outer;
  for (size_t n = 0; n + 1 < loops.size(); ++n)
    if (loops[n].name != across) outer.push_back(loops[n]);
  outer.insert(outer.end(), {blocks, row_blocks});
  std::vector<LoopRef> order(outer.begin(), outer.end());
  order.insert(order.end(), {row, column});
  s[stage].reorder(order);
  fuse_and_parallel(s, stage, outer);
  s[stage].unroll(row).vectorize(column, {Tail::mask});
}

/// Whether the stage chooses an element by where it stands along axis n: parts that are joined, a
/// border round x. Not what it chooses by numbers.
bool chooses_along(const Stage& stage, size_t n) {
  bool found = false;
  for (const Expr& value : stage.values)
    walk(value, [&](const Expr& e) {
      const Select* choice = e.as<Select>();
      found = found || (choice && uses_var(choice->condition, stage.axes[n].axis.var) &&
                        !has_load(choice->condition));
      return true;
    });
  return found;
}

bool chooses_by_place(const Program& program) {
  for (const StagePath& path : stage_paths(program.body))
    for (size_t n = 0; n < path.stage->axes.size(); ++n)
      if (chooses_along(*path.stage, n)) return true;
  return false;
}

/// Two vectors; a short row that changes along it all at once, so that each vector knows its
/// choice.
int64_t standard_vectors(const Program& program, const Target& target) {
  const StagePath last = stage_paths(program.body).back();
  if (last.loops.empty() || !chooses_along(*last.stage, last.loops.size() - 1)) return 2;
  const int64_t row = 8 * target.lanes(last.stage->outputs[0]->dtype);
  return as_int(last.loops.back()->extent).value_or(row + 1) <= row ? 8 : 2;
}

/// for i: y(i) = i < n ? a(i) : b(i-n)   ->   for i in 0..n: y(i) = a(i);  for i in n..: y(i) =
/// b(i-n)
void peel(Schedule& s, const std::string& stage) {
  const std::vector<Loop> loops = s[stage].loops();
  for (size_t n = 0; n + 1 < loops.size(); ++n) s.try_apply(Partition{stage, loops[n].name});
}

}  // namespace

MapOptions standard_maps(const Program& program, const Target& target) {
  return {.vectors = standard_vectors(program, target),
          .block = 32,
          .peeled = chooses_by_place(program),
          .streams = exceeds_caches(program, target)};
}

void schedule_maps(Schedule& s, const MapOptions& options) {
  const std::vector<std::string> all = s.stages();
  for (const std::string& stage : all)
    if (stage != all.back()) s.try_apply(ComputeInline{stage});
  const std::string across = contiguous_loop(s.program());
  for (const std::string& stage : s.stages())
    if (stage == all.back() && !across.empty())
      transpose_blocks(s, stage, across, options.block);
    else
      schedule_root_map(s, stage, options.vectors);
  if (options.peeled) peel(s, all.back());
  if (options.streams) stream_output(s, all.back());
}

}  // namespace tenon
