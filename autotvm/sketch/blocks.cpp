#include "autotvm/sketch/blocks.h"

#include <algorithm>
#include <cstdlib>

#include "schedule/composites/cost.h"

namespace tenon {
namespace {

int64_t block_range(const LoopExtent& axis, int64_t inner, int64_t pieces) {
  return ceil_div(ceil_div(axis.extent, inner), pieces) * inner;
}

}  // namespace

bool is_batch(const TileSketch& sketch, size_t axis) {
  return axis != sketch.vector_axis && !sketch.nest->reuses_along(axis);
}

BlockLoops block_loops_of(const TileSketch& sketch, const TilePlan& plan) {
  const AnchorNest& nest = *sketch.nest;
  BlockLoops out;
  const auto add = [&](size_t axis, int64_t range) {
    out.loops.push_back({axis, ceil_div(nest.axes[axis].extent, range), range});
  };
  for (size_t n = 0; n < nest.spatial; ++n)
    if (is_batch(sketch, n)) add(n, plan.inner[n]);
  const auto add_pieces = [&](bool of_vector) {
    for (size_t n = 0; n < nest.spatial; ++n) {
      const int64_t range = block_range(nest.axes[n], plan.inner[n], plan.pieces[n]);
      if (!is_batch(sketch, n) && (n == sketch.vector_axis) == of_vector &&
          range < nest.axes[n].extent)
        add(n, range);
    }
  };
  add_pieces(plan.vector_blocks_first);
  out.leading = out.loops.size();
  const size_t k = nest.longest_reduction();
  out.k_in_blocks = plan.k_block > 0 && plan.k_block < nest.axes[k].extent;
  if (out.k_in_blocks) add(k, plan.k_block);
  add_pieces(!plan.vector_blocks_first);
  if (!out.k_in_blocks) out.leading = out.loops.size();
  return out;
}

std::optional<size_t> copy_block(const BlockLoops& blocks, const Operand& o,
                                 const std::string& pack) {
  std::optional<size_t> found;
  if (pack != "block" && pack != "outer") return found;
  for (size_t n = 0; n < blocks.loops.size(); ++n) {
    if (!o.moves(blocks.loops[n].axis)) continue;
    if (pack == "outer" && found && blocks.loops[*found].count > 1) break;
    found = n;
  }
  return found;
}

std::optional<double> copied_share(const TileSketch& sketch, const BlockLoops& blocks,
                                   const Operand& o, size_t at) {
  std::vector<int64_t> range;
  for (const LoopExtent& axis : sketch.nest->axes) range.push_back(axis.extent);
  double copies = 1;
  for (size_t n = 0; n <= at; ++n) {
    range[blocks.loops[n].axis] = blocks.loops[n].range;
    copies *= static_cast<double>(blocks.loops[n].count);
  }
  double share = copies;
  for (const OperandDim& dim : o.dims) {
    int64_t box = 1;
    for (size_t n = 0; n < dim.axes.size(); ++n) {
      if (dim.steps[n] == 0) return std::nullopt;
      box += std::abs(dim.steps[n]) * (range[dim.axes[n]] - 1);
    }
    share *= static_cast<double>(box) / static_cast<double>(std::max<int64_t>(dim.extent, 1));
  }
  return share;
}

}  // namespace tenon
