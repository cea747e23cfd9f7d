#include <tenon/autotvm/sketch.h>
#include <tenon/schedule/roles.h>

#include "autotvm/sketch/multi_level_tile.h"
#include "autotvm/sketch/row_rules.h"

namespace tenon {
namespace {

using Rule = std::vector<NamedTemplate> (*)(const Program&, const Target&);

/// A reduction whose vectors run along one of its spatial axes: one sketch for each of the two most
/// promising axes.
std::vector<NamedTemplate> tile_rule(const Program& program, const Target& target) {
  constexpr size_t kVectorAxes = 2;
  if (reductions_are_chained(program)) return {};
  const Roles parts = roles(program);
  const auto nest = find_anchor_nest(program, parts.anchor);
  if (!nest) return {};
  std::vector<NamedTemplate> out;
  for (TileSketch& sketch : tile_sketches(*nest, !parts.prologue.empty(), target)) {
    if (out.size() == kVectorAxes) break;
    const std::string name = "sketch.tile." + nest->axes[sketch.vector_axis].loop;
    out.push_back({name, [sketch](Schedule& s, Knobs& knobs) {
                     apply_tiles(s, sketch, choose_tiles(sketch, s.target(), knobs));
                   }});
  }
  return out;
}

constexpr Rule kRules[] = {tile_rule, row_rule, pieces_rule, map_rule};

}  // namespace

std::vector<NamedTemplate> sketches_for(const Program& program, const Target& target) {
  std::vector<NamedTemplate> out;
  if (target.is_gpu()) return out;
  for (Rule rule : kRules)
    for (NamedTemplate& t : rule(program, target)) out.push_back(std::move(t));
  return out;
}

}  // namespace tenon
