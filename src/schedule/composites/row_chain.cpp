#include "schedule/composites/row_chain.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <set>
#include <utility>

#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/unscheduled.h"

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

/// The loops of a reduction: those over its own spatial axes below `round` (all when that is null),
/// and the others.
struct ReductionLoops {
  std::vector<Loop> spatial, reduce;
};

ReductionLoops reduction_loops(const Program& program, const std::string& stage,
                               const Loop* round) {
  ReductionLoops out;
  for (const StagePath& path : stage_paths(program.body)) {
    if (path.stage->name != stage) continue;
    bool below = round == nullptr;
    for (const For* loop : path.loops) {
      if (below)
        (loop->kind == AxisKind::reduce ? out.reduce : out.spatial)
            .push_back({stage, loop->var.name()});
      below = below || loop->var.name() == round->name;
    }
  }
  return out;
}

/// Whether the reduction reads neighbours in memory along this loop of its own, its elements being
/// further apart.
bool combines_a_row(const Schedule& s, const std::string& stage, const Loop& loop) {
  bool found = false;
  for (const StagePath& path : stage_paths(s.program().body)) {
    if (path.stage->name != stage || path.loops.empty()) continue;
    if (path.loops.back()->var.name() != loop.name) continue;
    const auto moves = [&](const Load& l, bool own) {
      return std::any_of(path.stage->axes.begin(), path.stage->axes.end(),
                         [&](const AxisBinding& b) {
                           return uses_var(b.value, path.loops.back()->var) == own &&
                                  uses_var(l.indices.back(), b.axis.var);
                         });
    };
    for (const Expr& value : path.stage->values)
      walk(value, [&](const Expr& e) {
        const Load* l = e.as<Load>();
        if (l && !l->indices.empty()) found = found || (moves(*l, true) && !moves(*l, false));
        return true;
      });
  }
  return found;
}

bool is_half(const Schedule& s, const std::string& stage) {
  for (const StagePath& path : stage_paths(s.program().body))
    if (path.stage->name == stage)
      return is_float(path.stage->outputs[0]->dtype) &&
             byte_size(path.stage->outputs[0]->dtype) < 4;
  return false;
}

/// What is left of a row's reduction is one vector or a few, combined lane with lane. Not in half
/// precision, where another order gives quite another sum: 4096 ones are 2048 one by one.
///   for l: S += P(l)   ->   for l vectorize: S += P(l)
void combine_lanes(Schedule& s, const std::string& stage) {
  if (is_half(s, stage)) return;
  const ReductionLoops loops = reduction_loops(s.program(), stage, nullptr);
  if (loops.reduce.empty() || !combines_a_row(s, stage, loops.reduce.back())) return;
  s.try_apply(Vectorize{stage, loops.reduce.back().name, Tail::mask});
}

/// A reduction whose last spatial loop can become vectors: the lanes accumulate in registers.
///   for l: for k: P(l) += x(k, l)   ->   for k: for l vectorize: P.cache(l) += x(k, l);  P(l) =
///   P.cache(l)
/// Returns the stages it is done with.
std::vector<std::string> vectorize_lanes(Schedule& s, const std::string& stage, const Loop* round) {
  ReductionLoops loops = reduction_loops(s.program(), stage, round);
  if (loops.spatial.empty() || loops.reduce.empty()) return {};
  if (combines_a_row(s, stage, loops.reduce.back())) return {};
  const int64_t extent = loop_extent(s, loops.spatial.back()),
                most = 8 * s.target().lanes(DType::f32);
  if (extent < 4 || (round && extent > most)) return {};
  const auto [tiles, lane] = s[stage].split(loops.spatial.back(), std::min(extent, most));
  loops.spatial.back() = tiles;
  std::vector<LoopRef> order(loops.spatial.begin(), loops.spatial.end());
  order.insert(order.end(), loops.reduce.begin(), loops.reduce.end());
  order.push_back(lane);
  s[stage].reorder(order);
  const std::string store = s[stage].cache_write(tiles, {Scope::reg}).store;
  s[stage].vectorize(lane, {Tail::mask});
  finish_map_in_tile(s, store, tiles);
  if (!round) fuse_and_parallel(s, stage, loops.spatial);
  return {stage, store};
}

/// Sums along neighbours as partial sums side by side. Not in half precision, as above.
///   for k: S += x(k)   ->   for k.i in 0..parts: S.rf(k.i) = sum of x(k.o * parts + k.i);  S = sum
///   of S.rf
/// Returns the stages that made the sums.
std::vector<std::string> cut_into_parts(Schedule& s, const std::vector<std::string>& stages,
                                        const RowOptions& options) {
  const int64_t parts = options.parts;
  std::vector<std::string> made;
  for (const std::string& stage : stages) {
    const ReductionLoops loops = reduction_loops(s.program(), stage, nullptr);
    if (options.products.count(stage) > 0) continue;
    if (parts == 0 || is_half(s, stage) || loops.reduce.empty()) continue;
    const Loop& last = loops.reduce.back();
    if (!combines_a_row(s, stage, last) || loop_extent(s, last) < 2 * parts) continue;
    Schedule cut = s;
    const Loop inner = cut[stage].split(last, parts).inner;
    if (cut.try_apply(RFactor{stage, inner.name})) continue;
    s = cut;
    made.push_back(stage + ".rf");
  }
  return made;
}

/// A product in a block of rows: the panel of its second factor stays while the block's rows pass.
///   for i: for j: for k: S(i,j) += a(i,k) * b(k,j)   ->   for j.o: for i.o: for k: for i.i unroll:
///   for j.i vectorize: S.cache(i,j) += ..;  S(i,j) = S.cache(i,j)
void tile_product(Schedule& s, const std::string& stage, const Loop& round,
                  const ProductTile& tile) {
  ReductionLoops loops = reduction_loops(s.program(), stage, &round);
  if (loops.spatial.size() < 2) return;
  const Loop columns = loops.spatial.back(), rows = loops.spatial[loops.spatial.size() - 2];
  loops.spatial.resize(loops.spatial.size() - 2);
  const int64_t width = tile.vectors * s.target().lanes(DType::f32);
  const auto [column_tiles, column] = s[stage].split(columns, width);
  const auto [row_tiles, row] = s[stage].split(rows, tile.rows);
  std::vector<LoopRef> order(loops.spatial.begin(), loops.spatial.end());
  order.insert(order.end(), {column_tiles, row_tiles});
  order.insert(order.end(), loops.reduce.begin(), loops.reduce.end());
  order.insert(order.end(), {row, column});
  s[stage].reorder(order);
  const std::string store = s[stage].cache_write(row_tiles, {Scope::reg}).store;
  s[stage].unroll(row).vectorize(column, {Tail::mask});
  finish_map_in_tile(s, store, row_tiles);
}

/// Rows that come from beyond the second cache: the next one is asked for while the last pass over
/// this one runs, whose own numbers are near by then.
///   for i: .. for j: y(i,j)   ->   for i prefetch(x)=1: .. for j prefetch_part(x)=1: y(i,j)
void fetch_next_row(Schedule& s, const std::string& last, const Loop& row, int64_t rows) {
  const std::vector<Loop> below = loops_below(s, last, row);
  for (const Buffer& x : far_inputs(s, row)) {
    const int64_t each = std::max<int64_t>(1, bytes_of(*x) / std::max<int64_t>(1, rows));
    if (4 * each > s.target().l2_bytes) continue;
    if (below.size() > 1)
      s.try_apply(Prefetch{last, x->name, row.name, 1, below[below.size() - 2].name});
    else
      s.try_apply(Prefetch{last, x->name, row.name, ceil_div(kAheadBytes, each), ""});
  }
}

/// Each reduction by itself at the root, its vectors along its last spatial loop.
void schedule_apart(Schedule& s, const std::vector<std::string>& stages,
                    const std::set<std::string>& reductions, bool lanes) {
  std::vector<std::string> done;
  for (const std::string& stage : stages)
    if (lanes && reductions.count(stage))
      for (const std::string& part : vectorize_lanes(s, stage, nullptr)) done.push_back(part);
  schedule_rest(s, done);
  if (lanes)
    for (const std::string& stage : reductions) combine_lanes(s, stage);
  for (const std::string& stage : reductions) fetch_ahead(s, stage);
}

/// The loops over rows outside of the others, as one where they fuse. Gives the innermost of them
/// and the outermost.
std::pair<Loop, Loop> rows_outside(Schedule& s, const std::string& last, const RowLoops& r) {
  if (r.rows.size() > 1 || !r.within.empty()) {
    std::vector<LoopRef> order(r.rows.begin(), r.rows.end());
    order.insert(order.end(), r.within.begin(), r.within.end());
    s[last].reorder(order);
  }
  Loop row = r.rows[0], outermost = row;
  for (size_t n = 1; n < r.rows.size(); ++n) {
    const bool fused = !s.try_apply(Fuse{last, row.name, r.rows[n].name});
    const bool whole = fused && outermost.name == row.name;
    row = fused ? Loop{last, row.name + "_" + r.rows[n].name} : r.rows[n];
    if (whole) outermost = row;
  }
  return {row, outermost};
}

bool is_placed(const RowOptions& options, const std::string& stage) {
  return std::find(options.placed.begin(), options.placed.end(), stage) != options.placed.end();
}

}  // namespace

void schedule_rows(Schedule& s, const RowOptions& options) {
  RowLoops r = row_loops(s.program());
  if (r.rows.empty() || options.apart) {
    cut_into_parts(s, s.stages(), options);
    return schedule_apart(s, s.stages(), reduction_names(s.program()), options.lanes);
  }
  const std::vector<std::string> stages = s.stages();
  const std::string last = stages.back();
  int64_t rows = 1;
  for (const Loop& l : r.rows) rows *= loop_extent(s, l);
  if (options.block > 0) {
    const auto [blocks, inner] = s[last].split(r.rows.back(), options.block);
    r.rows.back() = blocks;
    r.within.insert(r.within.begin(), inner);
  }
  const auto [row, outermost] = rows_outside(s, last, r);
  std::vector<std::string> inside;
  for (size_t n = stages.size() - 1; n-- > 0;)
    if (!is_placed(options, stages[n]) && !s.try_apply(ComputeAt{stages[n], last, row.name}))
      inside.push_back(stages[n]);
  for (const std::string& part : cut_into_parts(s, inside, options)) inside.push_back(part);
  const std::set<std::string> reductions = reduction_names(s.program());
  std::vector<std::string> done = inside;
  done.insert(done.end(), options.placed.begin(), options.placed.end());
  done.push_back(last);
  inside.push_back(last);
  for (const std::string& stage : inside) {
    const auto product = options.products.find(stage);
    if (product != options.products.end())
      tile_product(s, stage, row, product->second);
    else if (!reductions.count(stage))
      finish_map_in_loop(s, stage, row, options.map_vectors);
    else if (options.lanes && stage != last)
      vectorize_lanes(s, stage, &row);
  }
  fuse_and_parallel(s, last, {outermost});
  schedule_rest(s, done);
  if (options.lanes)
    for (const std::string& stage : reductions) combine_lanes(s, stage);
  if (options.block > 0) return;
  if (!reductions.count(last))
    fetch_next_row(s, last, row, rows);
  else
    for (const std::string& stage : reductions) fetch_ahead(s, stage);
  if (options.streams) stream_output(s, last);
}

}  // namespace tenon
