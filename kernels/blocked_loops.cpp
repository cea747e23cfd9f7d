#include "kernels/blocked_loops.h"

#include <algorithm>

#include "schedule/composites/cost.h"

namespace tenon {
namespace {

/// Bytes of a row that are copied before the next rows: enough for the prefetchers, while the
/// panels that are written lie in few enough pages.
constexpr int64_t kPieceOfRow = 512;

}  // namespace

BlockedLoops block_loops(Schedule& s, const Contraction& c, const Blocking& b,
                         const TileShape& shape) {
  StageSteps anchor = s[c.stage];
  const int64_t width = b.tile.vectors * shape.lanes, group = shape.group;
  BlockedLoops l;
  Loop columns{c.stage, c.vector.loop}, k{c.stage, c.reduce[0].loop}, row_tiles;
  for (const LoopExtent& batch : c.batch) l.shared.push_back({c.stage, batch.loop});
  for (const LoopExtent& single : c.outer) l.shared.push_back({c.stage, single.loop});
  if (c.extra) l.shared.push_back({c.stage, c.extra->loop});
  if (c.rows) {
    Loop rows{c.stage, c.rows->loop};
    if (b.row_pieces > 1) {
      const int64_t tiles = ceil_div(c.rows->extent, b.tile.rows),
                    piece = ceil_div(tiles, b.row_pieces) * b.tile.rows;
      const auto [o, i] = anchor.split(rows, piece);
      l.shared.push_back(o);
      rows = i;
    }
    const auto [o, i] = anchor.split(rows, b.tile.rows);
    row_tiles = o;
    l.rows = i;
  }
  if (b.panels > 0 && b.panels * width < c.vector.extent) {
    const auto [o, i] = anchor.split(columns, b.panels * width);
    l.shared.push_back(o);
    columns = i;
  }
  if (!l.shared.empty()) l.block = l.shared.back();
  std::vector<LoopRef> order(l.shared.begin(), l.shared.end());
  if (b.k_block > 0 && b.k_block * group < c.reduce[0].extent) {
    const auto [o, i] = anchor.split(k, b.k_block * group);
    order.push_back(o);
    l.block = o;
    k = i;
  }
  const auto [column_tile, lane] = anchor.split(columns, width);
  l.vector = lane;
  Loop terms;
  if (group > 1) {
    const auto [o, i] = anchor.split(k, group);
    k = o;
    terms = i;
  }
  l.panel = column_tile;
  l.k = k;
  l.tile = b.panels_outside && c.rows ? row_tiles : column_tile;
  if (c.rows) order.push_back(b.panels_outside ? column_tile : row_tiles);
  order.push_back(l.tile);
  if (!shape.sums_outside) order.push_back(k);
  if (c.rows) order.push_back(l.rows);
  order.push_back(lane);
  if (shape.sums_outside) order.push_back(k);
  if (group > 1) order.push_back(terms);
  anchor.reorder(order);
  return l;
}

std::vector<LayoutDim> panel_layout(const Contraction& c, const std::optional<DotProduct>& dots,
                                    int64_t width) {
  std::vector<LayoutDim> layout;
  const int vector = c.x_order.back();
  const int k = dots ? dots->k_of_x : c.x_order.size() > 1 ? c.x_order[c.x_order.size() - 2] : -1;
  for (int d : c.x_order)
    if (d != vector && d != k) layout.push_back({d, 1, 0});
  layout.push_back({vector, width, 0});
  if (k >= 0) layout.push_back({k, dots ? dots->group : 1, 0});
  layout.push_back({vector, 1, width});
  if (dots) layout.push_back({k, 1, dots->group});
  return layout;
}

void interleave(Schedule& s, const std::string& copy, const std::vector<Loop>& loops,
                const Contraction& c, const DotProduct& dots, int64_t width) {
  const Loop lanes = loops[static_cast<size_t>(c.x_order.back())];
  const Loop k = loops[static_cast<size_t>(dots.k_of_x)];
  const auto [group, term] = s[copy].split(k, dots.group);
  const int64_t panels = std::max<int64_t>(1, kPieceOfRow / (width * (4 / dots.group)));
  const auto [piece, columns] = s[copy].split(lanes, panels * width);
  const auto [panel, lane] = s[copy].split(columns, width);
  std::vector<LoopRef> order;
  for (const Loop& l : loops)
    if (l.name != k.name && l.name != lanes.name) order.push_back(l);
  order.insert(order.end(), {piece, group, panel, term, lane});
  s[copy].reorder(order);
  s[copy].unroll(term);
  s[copy].vectorize(lane, {Tail::mask});
}

}  // namespace tenon
