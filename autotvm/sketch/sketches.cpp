#include <tenon/autotvm/sketch.h>
#include <tenon/schedule/roles.h>

#include <algorithm>

#include "autotvm/sketch/multi_level_tile.h"
#include "autotvm/sketch/row_rules.h"

namespace tenon {
namespace {

using Rule = std::vector<NamedTemplate> (*)(const Program&, const Target&);

/// Sketches as templates, the most promising of them.
void add_tiles(const std::string& kind, const std::vector<TileSketch>& sketches,
               std::vector<NamedTemplate>& out) {
  constexpr size_t kVectorAxes = 2;
  for (size_t n = 0; n < std::min(sketches.size(), kVectorAxes); ++n) {
    const TileSketch& sketch = sketches[n];
    out.push_back(
        {kind + sketch.nest->axes[sketch.vector_axis].loop, [sketch](Schedule& s, Knobs& knobs) {
           apply_tiles(s, sketch, choose_tiles(sketch, s.target(), knobs));
         }});
  }
}

/// A reduction whose vectors run along one of its spatial axes: one sketch for each of the two most
/// promising axes, and, where the machine has an instruction for groups of its terms (on lanes, on
/// tiles), on that.
std::vector<NamedTemplate> tile_rule(const Program& program, const Target& target) {
  if (count_reductions(program).chained) return {};
  const Roles parts = roles(program);
  const auto nest = find_anchor_nest(program, parts.anchor);
  if (!nest) return {};
  const bool prologue = !parts.prologue.empty();
  std::vector<NamedTemplate> out;
  add_tiles("sketch.unit.", unit_sketches(program, *nest, prologue, target), out);
  add_tiles("sketch.dots.", dot_sketches(program, *nest, prologue, target), out);
  add_tiles("sketch.tile.", tile_sketches(*nest, prologue, target), out);
  return out;
}

constexpr Rule kRules[] = {tile_rule, row_block_rule, row_rule, pieces_rule, map_rule};

}  // namespace

std::vector<NamedTemplate> sketches_for(const Program& program, const Target& target) {
  std::vector<NamedTemplate> out;
  if (target.is_gpu()) return out;
  for (Rule rule : kRules)
    for (NamedTemplate& t : rule(program, target)) out.push_back(std::move(t));
  return out;
}

}  // namespace tenon
