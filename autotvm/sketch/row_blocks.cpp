#include <tenon/ir/visit.h>

#include <algorithm>
#include <numeric>

#include "autotvm/sketch/copies.h"
#include "autotvm/sketch/row_rules.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/row_chain.h"

namespace tenon {
namespace {

constexpr int64_t kLeastTerms = 8;  // of a product's sum

/// A product in the chain: tiles of its last two axes, with vectors along the last.
struct ChainProduct {
  TileSketch sketch;
  int64_t rows = 1, vectors = 1;  ///< of the standard tile
};

/// What the chain computed is read element by element: a block of rows needs no more of it.
bool reads_rows_alone(const AnchorNest& nest) {
  for (const Operand& o : nest.operands)
    for (const OperandDim& dim : o.dims)
      if (o.computed && (dim.axes.size() > 1 || (dim.axes.size() == 1 && dim.steps[0] != 1)))
        return false;
  return true;
}

/// Tiles pay where an operand is used again by other rows.
std::optional<ChainProduct> product_of(const Program& program, const std::string& stage,
                                       const Target& target) {
  const auto nest = find_anchor_nest(program, stage);
  if (!nest || nest->spatial < 2 || nest->operands.size() < 2 || !reads_rows_alone(*nest))
    return std::nullopt;
  const size_t v = nest->spatial - 1, row = v - 1;
  int64_t terms = 1;
  for (size_t n = nest->spatial; n < nest->axes.size(); ++n) terms *= nest->axes[n].extent;
  if (terms < kLeastTerms || nest->axes[row].extent < 2 || !nest->reuses_along(row) ||
      !nest->reuses_along(v))
    return std::nullopt;
  for (const TileSketch& sketch : tile_sketches(*nest, false, target)) {
    if (sketch.vector_axis != v) continue;
    const int64_t lanes = target.lanes(nest->dtype);
    return ChainProduct{sketch, sketch.standard.inner[row], sketch.standard.inner[v] / lanes};
  }
  return std::nullopt;
}

std::vector<ChainProduct> products_of(const Program& program, const Target& target) {
  std::vector<ChainProduct> out;
  for (const StagePath& path : stage_paths(program.body))
    if (auto product = product_of(program, path.stage->name, target))
      out.push_back(std::move(*product));
  return out;
}

/// Copies of parameters that the product reads across its vectors, in panels. Adds them to those
/// that stay where they are.
void copy_panels(Schedule& s, const ChainProduct& product, const ProductTile& tile,
                 RowOptions& options) {
  const AnchorNest& nest = *product.sketch.nest;
  TilePlan plan = product.sketch.standard;
  plan.inner[product.sketch.vector_axis] = tile.vectors * s.target().lanes(nest.dtype);
  for (const Operand& o : nest.operands) {
    const bool across =
        o.moves(product.sketch.vector_axis) && !o.neighbours_along(product.sketch.vector_axis);
    if (!across || o.computed || !is_reordered(product.sketch, o)) continue;
    const Packing p = packing_of(product.sketch, plan, o, s.target());
    if (o.constant) {
      s.pack(o.buffer, p.layout, {PackWhen::ahead});
      continue;
    }
    const std::string copy = s.pack(o.buffer, p.layout);
    finish_copy(s, copy, s[copy].loops(), p, true);
    options.placed.push_back(copy);
  }
}

/// Rows so that the last stage's parts of them fill a quarter of the second cache, and the cores
/// have work.
int64_t standard_block(const std::vector<ChainProduct>& products, const Target& target) {
  int64_t most = 64, least = 1, row_bytes = 4;
  for (const ChainProduct& p : products) {
    const AnchorNest& nest = *p.sketch.nest;
    const LoopExtent &rows = nest.axes[nest.spatial - 2], &columns = nest.axes[nest.spatial - 1];
    int64_t batch = 1;
    for (size_t n = 0; n + 2 < nest.spatial; ++n) batch *= nest.axes[n].extent;
    most = std::min(most, std::max<int64_t>(1, rows.extent * batch / (2 * target.cores)));
    least = std::lcm(least, p.rows);
    row_bytes += 2 * columns.extent * byte_size(nest.dtype);
  }
  most = std::min(most, std::max<int64_t>(1, target.l2_bytes / 4 / row_bytes));
  return std::max(least, most / least * least);
}

ProductTile pick_tile(const ChainProduct& product, const Target& target, Knobs& knobs) {
  const AnchorNest& nest = *product.sketch.nest;
  const std::string rows = "rows." + nest.stage, vectors = "vectors." + nest.stage;
  const int64_t width =
      ceil_div(nest.axes[product.sketch.vector_axis].extent, target.lanes(nest.dtype));
  ProductTile tile;
  tile.rows = knobs.pick(rows,
                         ladder(nest.axes[nest.spatial - 2].extent,
                                {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14}, product.rows),
                         product.rows);
  tile.vectors =
      knobs.pick(vectors, ladder(width, {1, 2, 3, 4, 6, 8}, product.vectors), product.vectors);
  const int64_t free = registers_free(target);
  knobs.require(
      [=](const Point& p) {
        return p.number(rows) * p.number(vectors) + p.number(vectors) + 1 <= free;
      },
      "a tile needs more vector registers than the target has");
  knobs.require([=](const Point& p) { return p.number("block") % p.number(rows) == 0; },
                "a block of rows is no whole number of tiles");
  return tile;
}

}  // namespace

std::vector<NamedTemplate> row_block_rule(const Program& program, const Target& target) {
  if (!count_reductions(program).chained || keeps_order(program) || !program.symbols.empty())
    return {};
  const std::vector<ChainProduct> products = products_of(program, target);
  if (products.empty()) return {};
  const int64_t block = standard_block(products, target);
  int64_t most = 1;
  for (const ChainProduct& p : products)
    most = std::max(most, p.sketch.nest->axes[p.sketch.nest->spatial - 2].extent);
  return {{"sketch.row_blocks", [products, block, most](Schedule& s, Knobs& knobs) {
             RowOptions options;
             options.block = knobs.pick(
                 "block", ladder(most, {4, 8, 16, 24, 32, 48, 64, 96, 128}, block), block);
             options.parts = s.target().lanes(DType::f32) * knobs.pick("parts", {0, 1, 2, 4, 8}, 4);
             options.map_vectors = knobs.pick("vectors", {1, 2, 4, 8}, 2);
             for (const ChainProduct& p : products)
               options.products[p.sketch.nest->stage] = pick_tile(p, s.target(), knobs);
             for (const ChainProduct& p : products)
               copy_panels(s, p, options.products[p.sketch.nest->stage], options);
             schedule_rows(s, options);
           }}};
}

}  // namespace tenon
