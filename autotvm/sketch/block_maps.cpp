#include "autotvm/sketch/block_maps.h"

#include <algorithm>

#include "autotvm/sketch/blocks.h"
#include "autotvm/sketch/plan_knobs.h"

namespace tenon {
namespace {

constexpr double kMostShare = 2;      // times that an element of a map may be computed anyway
constexpr double kMapWork = 1.0 / 8;  // elements of maps for each term of the sum

/// Times that elements of the operand are computed in its copies at blocks; nothing where the plan
/// has no block loop for them.
std::optional<double> times_computed(const TileSketch& sketch, const TilePlan& plan, size_t n) {
  const BlockLoops blocks = block_loops_of(sketch, plan);
  const Operand& o = sketch.nest->operands[n];
  const auto at = copy_block(blocks, o, plan.pack[n]);
  return at ? copied_share(sketch, blocks, o, *at) : std::nullopt;
}

/// What is computed so often costs little beside the sum.
bool may_be_computed(const TileSketch& sketch, size_t n, double times) {
  double points = 1;
  for (const LoopExtent& axis : sketch.nest->axes) points *= static_cast<double>(axis.extent);
  const Operand& o = sketch.nest->operands[n];
  const double elements = o.bytes() / static_cast<double>(byte_size(o.dtype));
  return times <= kMostShare || times * elements <= kMapWork * points;
}

}  // namespace

void require_copies(const TileSketch& sketch, const Target& target, Knobs& knobs) {
  for (size_t n = 0; n < sketch.nest->operands.size(); ++n) {
    const Operand& o = sketch.nest->operands[n];
    if (!o.computed) continue;
    const std::string knob = "pack." + o.buffer;
    const bool packed = is_reordered(sketch, o);
    const bool grouped = sketch.dots.has_value();
    knobs.require(
        [=](const Point& p) {
          const bool copied = p.word(knob) != "no";
          return p.number("inline") == 0 ? packed || !copied : copied || !grouped;
        },
        "a copy without another order, or a group of terms without a copy");
    knobs.require(
        [=](const Point& p) {
          const std::string& word = p.word(knob);
          if (p.number("inline") == 0 || (word != "block" && word != "outer")) return true;
          Knobs bound(p);
          const auto times = times_computed(sketch, read_plan(sketch, target, bound), n);
          return times ? may_be_computed(sketch, n, *times) : packed;
        },
        "what is computed at the blocks is computed too often, or there are no blocks");
  }
}

void place_maps(TileSketch& sketch, const Target& target) {
  const AnchorNest& nest = *sketch.nest;
  const auto main = sketch.main;
  const double half = 0.5 * static_cast<double>(target.l2_bytes);
  for (size_t n = 0; main && n < nest.operands.size(); ++n) {
    const Operand& o = nest.operands[n];
    const double bytes = o.bytes();
    if (!o.computed || sketch.standard.pack[n] != "no" || bytes <= half) continue;
    for (int64_t pieces : piece_counts(sketch, *main)) {
      TilePlan plan = sketch.standard;
      plan.pieces[*main] = pieces;
      plan.pack[n] = "block";
      plan.inlined = true;
      for (bool vectors_first : {true, false}) {
        plan.vector_blocks_first = vectors_first;
        const auto times = times_computed(sketch, plan, n);
        const BlockLoops blocks = block_loops_of(sketch, plan);
        double copies = 1;
        for (size_t at = 0; times && at <= *copy_block(blocks, o, "block"); ++at)
          copies *= static_cast<double>(blocks.loops[at].count);
        if (!times || *times > kMostShare || *times * bytes > half * copies) continue;
        sketch.standard = plan;
        return;
      }
    }
  }
}

}  // namespace tenon
