#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <set>

#include "kernels/nests.h"
#include "kernels/templates.h"

namespace tenon {
namespace {

/// The last stage's loops, split into those over rows (every reduction that the stage reads is
/// indexed by them) and those within a row.
struct RowLoops {
  std::vector<Loop> rows, within;
};

/// Buffers that hold what a reduction gave, or something computed from that.
std::set<const BufferNode*> reduced_buffers(const std::vector<StagePath>& paths) {
  std::set<const BufferNode*> buffers;
  for (const StagePath& path : paths) {
    bool reduced = path.stage->combiner != nullptr;
    for (const Expr& value : path.stage->values)
      walk(value, [&](const Expr& e) {
        if (auto* l = e.as<Load>()) reduced = reduced || buffers.count(l->buffer.get()) > 0;
        return true;
      });
    if (!reduced) continue;
    for (const Buffer& b : path.stage->outputs) buffers.insert(b.get());
  }
  return buffers;
}

std::set<std::string> reduction_names(const Program& program) {
  std::set<std::string> names;
  for (const StagePath& path : stage_paths(program.body))
    if (path.stage->combiner) names.insert(path.stage->name);
  return names;
}

RowLoops row_loops(const Program& program) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  const std::set<const BufferNode*> reduced = reduced_buffers(paths);
  const StagePath& last = paths.back();
  std::vector<const Load*> loads;
  for (const Expr& value : last.stage->values)
    walk(value, [&](const Expr& e) {
      if (auto* l = e.as<Load>(); l && reduced.count(l->buffer.get())) loads.push_back(l);
      return true;
    });
  RowLoops r;
  for (size_t n = 0; n < last.stage->indices.size(); ++n) {
    const Var& axis = last.stage->axes[n].axis.var;
    const bool everywhere = std::all_of(loads.begin(), loads.end(), [&](const Load* l) {
      return std::any_of(l->indices.begin(), l->indices.end(),
                         [&](const Expr& i) { return uses_var(i, axis); });
    });
    (everywhere ? r.rows : r.within).push_back({last.stage->name, last.loops[n]->var.name()});
  }
  return r;
}

/// A reduction inside a row whose last spatial loop can become vectors: the lanes accumulate in
/// registers.
///   for l: for k: P(l) += x(k, l)   ->   for k: for l vectorize: P.cache(l) += x(k, l);  P(l) =
///   P.cache(l)
void vectorize_lanes(Schedule& s, const std::string& stage, const Loop& row,
                     std::vector<std::string>& copies) {
  std::vector<Loop> spatial, reduce;
  for (const StagePath& path : stage_paths(s.program().body)) {
    if (path.stage->name != stage) continue;
    bool below = false;
    for (const For* loop : path.loops) {
      if (below)
        (loop->kind == AxisKind::reduce ? reduce : spatial).push_back({stage, loop->var.name()});
      below = below || loop->var.name() == row.name;
    }
  }
  if (spatial.empty() || reduce.empty()) return;
  const Loop lane = spatial.back();
  const int64_t extent = loop_extent(s, lane);
  if (extent < 4 || extent > 8 * s.target().lanes(DType::f32)) return;
  std::vector<LoopRef> order(spatial.begin(), spatial.end() - 1);
  order.insert(order.end(), reduce.begin(), reduce.end());
  order.push_back(lane);
  s[stage].reorder(order);
  const Loop at = spatial.size() > 1 ? spatial[spatial.size() - 2] : row;
  copies.push_back(s[stage].cache_write(at, {Scope::reg}).store);
  s[stage].vectorize(lane, {Tail::mask});
  finish_map_in_tile(s, copies.back(), at);
}

}  // namespace

/// max(i), e(i,j), sum(i), y(i,j)   ->   for i parallel: max; e in vectors; sum; y in vectors
void row_template(Schedule& s, Knobs& knobs) {
  const bool lanes = knobs.flag("lanes", true);
  const std::vector<std::string> stages = s.stages();
  const std::set<std::string> reductions = reduction_names(s.program());
  const std::string last = stages.back();
  const RowLoops r = row_loops(s.program());
  if (r.rows.empty()) {
    schedule_rest(s, {});
    return;
  }
  if (r.rows.size() > 1 || !r.within.empty()) {
    std::vector<LoopRef> order(r.rows.begin(), r.rows.end());
    order.insert(order.end(), r.within.begin(), r.within.end());
    s[last].reorder(order);
  }
  Loop row = r.rows[0];
  for (size_t n = 1; n < r.rows.size(); ++n) row = s[last].fuse(row, r.rows[n]);
  std::vector<std::string> inside;
  for (size_t n = stages.size() - 1; n-- > 0;)
    if (!s.try_apply(ComputeAt{stages[n], last, row.name})) inside.push_back(stages[n]);
  std::vector<std::string> done = inside, copies;
  for (const std::string& stage : inside) {
    if (!reductions.count(stage))
      finish_map_in_loop(s, stage, row);
    else if (lanes)
      vectorize_lanes(s, stage, row, copies);
  }
  if (!reductions.count(last)) finish_map_in_loop(s, last, row);
  fuse_and_parallel(s, last, {row});
  done.push_back(last);
  schedule_rest(s, done);
}

}  // namespace tenon
