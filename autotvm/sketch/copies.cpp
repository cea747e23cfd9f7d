#include "autotvm/sketch/copies.h"

#include <algorithm>

#include "schedule/composites/copies.h"
#include "schedule/composites/nests.h"

namespace tenon {
namespace {

/// A copy in groups: for each piece the terms of a group one after the other into the same lines.
void interleave(Schedule& s, const std::string& copy, std::vector<Loop> loops, const Packing& p) {
  const auto [groups, term] = s[copy].split(loops[p.terms_dim], p.group);
  loops[p.terms_dim] = groups;
  const auto [outer, inner] = s[copy].split(loops[p.dim], p.width);
  loops[p.dim] = outer;
  std::vector<LoopRef> order(loops.begin(), loops.end());
  order.insert(order.end(), {term, inner});
  s[copy].reorder(order);
  s[copy].unroll(term);
  s.try_apply(Vectorize{copy, inner.name, Tail::mask});
}

/// The operand with the terms of a sum next to each other.
Packing terms_last(const AnchorNest& nest, const Operand& o, size_t sum_axis) {
  Packing p;
  p.dim = nest.dim_of(o, sum_axis).value_or(0);
  p.turned = true;
  for (size_t d = 0; d < o.dims.size(); ++d)
    if (d != p.dim) p.layout.push_back({static_cast<int>(d), 1, 0});
  p.layout.push_back({static_cast<int>(p.dim), 1, 0});
  return p;
}

/// for k: for i: copy(i, k) = x(k, i)   ->   for i: for k.o: for k.i vectorize
void turn(Schedule& s, const std::string& copy, std::vector<Loop> loops, const Packing& p,
          bool at_root) {
  constexpr int64_t kTurned = 64;
  const Loop terms = loops[p.dim];
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(p.dim));
  const auto [outer, inner] = s[copy].split(terms, kTurned);
  std::vector<LoopRef> order(loops.begin(), loops.end());
  order.insert(order.end(), {outer, inner});
  s[copy].reorder(order);
  s.try_apply(Vectorize{copy, inner.name, Tail::mask});
  if (at_root) fuse_and_parallel(s, copy, loops);
}

/// What a copy holds behind dimension `dim` of the operand are stretches of its memory: sums over
/// whole dimensions, the first of them whole or a block.
bool whole_rows_behind(const AnchorNest& nest, const TilePlan& plan, const Operand& o, size_t dim) {
  for (size_t d = dim + 1; d < o.dims.size(); ++d) {
    const OperandDim& row = o.dims[d];
    if (row.axes.size() != 1 || !nest.is_reduction(row.axes[0]) || row.steps[0] != 1) return false;
    const bool whole = nest.axes[row.axes[0]].extent == row.extent &&
                       (plan.k_block == 0 || row.axes[0] != nest.longest_reduction());
    if (d > dim + 1 && !whole) return false;
  }
  return dim + 1 < o.dims.size();
}

}  // namespace

Packing packing_of(const TileSketch& sketch, const TilePlan& plan, const Operand& o,
                   const Target& target) {
  const AnchorNest& nest = *sketch.nest;
  size_t axis = sketch.vector_axis;
  Packing p;
  if (!is_reordered(sketch, o)) return p;
  if (sketch.unit && !o.moves(axis)) return terms_last(*sketch.nest, o, sketch.sum_axis);
  if (!o.moves(axis))
    for (axis = 0; axis + 1 < nest.spatial; ++axis)
      if (plan.inner[axis] > 1 && nest.dim_of(o, axis)) break;
  p.dim = nest.dim_of(o, axis).value_or(0);
  p.width = axis == sketch.vector_axis && !vectors_along_rows(sketch)
                ? std::min<int64_t>(plan.inner[axis], target.lanes(nest.dtype))
                : plan.inner[axis];
  if (o.dims[p.dim].axes.size() > 1) p.width = nest.axes[axis].extent;
  const auto dim = [](size_t d) { return static_cast<int>(d); };
  const auto is_spatial = [&](size_t d) {
    return std::all_of(o.dims[d].axes.begin(), o.dims[d].axes.end(),
                       [&](size_t a) { return !nest.is_reduction(a); });
  };
  for (size_t d = 0; d < o.dims.size(); ++d)
    if (d != p.dim && is_spatial(d)) p.layout.push_back({dim(d), 1, 0});
  if (sketch.dots && o.moves(sketch.vector_axis)) {
    p.terms_dim = nest.dim_of(o, sketch.sum_axis).value_or(0);
    p.group = sketch.group;
  }
  p.layout.push_back({dim(p.dim), p.width, 0});
  for (size_t d = 0; d < o.dims.size(); ++d)
    if (d != p.dim && !is_spatial(d) && !(p.group > 1 && d == p.terms_dim))
      p.layout.push_back({dim(d), 1, 0});
  if (p.group > 1) p.layout.push_back({dim(p.terms_dim), p.group, 0});
  if (p.width > 1) p.layout.push_back({dim(p.dim), 1, p.width});
  if (p.group > 1) p.layout.push_back({dim(p.terms_dim), 1, p.group});
  p.across = !o.computed && p.group == 1 && p.width > 1 && p.width <= target.lanes(o.dtype) &&
             whole_rows_behind(nest, plan, o, p.dim);
  return p;
}

void finish_copy(Schedule& s, const std::string& copy, std::vector<Loop> loops, const Packing& p,
                 bool at_root) {
  const bool rows = p.dim + 1 == loops.size();
  if (p.turned) return turn(s, copy, loops, p, at_root);
  if (p.group > 1) {
    interleave(s, copy, loops, p);
    if (at_root) fuse_and_parallel(s, copy, {s[copy].loops()[0]});
    return;
  }
  if (p.width == 1) {
    if (at_root) fuse_and_parallel(s, copy, {loops[0]});
    return;
  }
  if (p.across) {
    const std::vector<Loop> outer = transpose_copy(s, copy, loops, p.dim, p.width);
    if (at_root) fuse_and_parallel(s, copy, outer);
    return;
  }
  const auto [outer, inner] = s[copy].split(loops[p.dim], p.width);
  loops[p.dim] = outer;
  if (!rows) {
    std::vector<LoopRef> order(loops.begin(), loops.end());
    order.push_back(inner);
    s[copy].reorder(order);
  }
  s.try_apply(Vectorize{copy, inner.name, Tail::mask});
  if (at_root) fuse_and_parallel(s, copy, {loops.begin(), loops.end() - (rows ? 1 : 0)});
}

}  // namespace tenon
