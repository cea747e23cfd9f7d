#include "autotvm/sketch/row_rules.h"

#include <tenon/ir/visit.h>
#include <tenon/schedule/roles.h>

#include <algorithm>

#include "autotvm/sketch/anchor.h"
#include "schedule/composites/map_nest.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/row_chain.h"
#include "schedule/tree.h"

namespace tenon {
namespace {

/// Several results use the same operand: tiles pay, rows alone do not.
bool has_reuse(const AnchorNest& nest) {
  for (size_t n = 0; n < nest.spatial; ++n)
    if (nest.axes[n].extent > 1 && nest.reuses_along(n)) return true;
  return false;
}

/// Vectors that partial sums are cut into; 0: none.
int64_t pick_parts(const Target& target, Knobs& knobs) {
  return target.lanes(DType::f32) * knobs.pick("parts", {0, 1, 2, 4, 8}, 4);
}

/// The outermost reduction loop in pieces, each a sum of its own.
///   for k: S += x(k)   ->   for k.o in 0..pieces: S.rf(k.o) = sum over k.i;  S = sum of S.rf
void cut_into_pieces(Schedule& s, const std::string& stage, int64_t pieces) {
  const StagePath path = find_stage(s.program(), stage);
  for (const For* loop : path.loops) {
    if (loop->kind != AxisKind::reduce) continue;
    const int64_t extent = most_iterations(*loop);
    const int64_t size = (extent + pieces - 1) / pieces;
    const Loop outer = s[stage].split(Loop{stage, loop->var.name()}, size).outer;
    s[stage].rfactor(outer, {.dim = 0});
    return;
  }
}

}  // namespace

std::vector<NamedTemplate> row_rule(const Program& program, const Target&) {
  const ReductionCount reductions = count_reductions(program);
  if (reductions.count == 0 || keeps_order(program) || !program.symbols.empty()) return {};
  const auto nest = find_anchor_nest(program, roles(program).anchor);
  if (nest && !reductions.chained && has_reuse(*nest)) return {};
  return {{"sketch.rows", [](Schedule& s, Knobs& knobs) {
             RowOptions options;
             options.parts = pick_parts(s.target(), knobs);
             options.map_vectors = knobs.pick("vectors", {1, 2, 4, 8}, 2);
             options.lanes = knobs.flag("lanes", true);
             options.streams = knobs.flag("stream", exceeds_caches(s.program(), s.target()));
             schedule_rows(s, options);
           }}};
}

std::vector<NamedTemplate> pieces_rule(const Program& program, const Target& target) {
  constexpr int64_t kFewResults = 8;   // for each core
  constexpr int64_t kWorthIt = 16384;  // points of one result
  if (count_reductions(program).count == 0 || keeps_order(program) || !program.symbols.empty())
    return {};
  const std::string anchor = roles(program).anchor;
  int64_t results = 1;
  const StagePath path = find_stage(program, anchor);
  for (const For* loop : path.loops)
    if (loop->kind == AxisKind::spatial) results *= most_iterations(*loop);
  if (results == 0 || results > kFewResults * target.cores ||
      stage_points(program, anchor) / results < kWorthIt)
    return {};
  return {{"sketch.pieces", [anchor](Schedule& s, Knobs& knobs) {
             const int64_t cores = s.target().cores;
             const int64_t pieces =
                 knobs.pick("pieces", ladder(16 * cores, {1, 2, 4, 8, 16, 32, 64}, cores), cores);
             RowOptions options;
             options.parts = pick_parts(s.target(), knobs);
             options.apart = true;
             if (pieces > 1) cut_into_pieces(s, anchor, pieces);
             schedule_rows(s, options);
           }}};
}

std::vector<NamedTemplate> map_rule(const Program& program, const Target&) {
  if (stage_paths(program.body).empty() || count_reductions(program).count > 0 ||
      keeps_order(program))
    return {};
  return {{"sketch.map", [](Schedule& s, Knobs& knobs) {
             const MapOptions standard = standard_maps(s.program(), s.target());
             MapOptions options;
             options.vectors = knobs.pick("vectors", {1, 2, 4, 8, 16}, standard.vectors);
             options.block = knobs.pick("block", {8, 16, 32, 64, 128}, standard.block);
             options.peeled = knobs.flag("peel", standard.peeled);
             options.streams = knobs.flag("stream", standard.streams);
             schedule_maps(s, options);
           }}};
}

}  // namespace tenon
