#include <tenon/support/error.h>

#include <algorithm>

#include "ir/tile_nest.h"
#include "kernels/blocked_conv.h"
#include "kernels/dot_product.h"
#include "kernels/templates.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/unit_cost.h"

namespace tenon {
namespace {

/// Tiles of sums, and what runs outside: the pixels, so that W passes by for each piece of the
/// image, or the lanes, so that the image passes by for each panel of W.
struct UnitCut {
  int64_t row_tiles = 2, lane_tiles = 2;
  bool pixels_outside = false;
};

/// A convolution on a matrix unit: what it is made of.
struct UnitConv {
  BlockedConv c;
  IntrinsicRef unit;
  IntrinsicParts parts;
};

/// The pixels of one nest: `rows` of the image, `columns` in each.
struct Pixels {
  int64_t rows = 1, columns = 1, each = 1, tiles = 1;  // rows of a tile; tiles of the nest
};

/// Short rows of the image are a tile each, several of them a nest; long ones are cut evenly.
Pixels pixels_of(const UnitConv& u, int64_t row_tiles) {
  const int64_t width = u.c.columns->extent, most = u.parts.rows, across = ceil_div(width, most);
  Pixels p;
  if (across == 1) p.rows = std::min(row_tiles, extent_of(u.c.rows));
  p.columns = ceil_div(width, ceil_div(across, row_tiles));
  const RowTiles tiles = cut_into_tiles(p.columns, most);
  p.each = tiles.each;
  p.tiles = p.rows * tiles.count;
  return p;
}

/// Estimated cycles of a core. A step of a nest takes its products, or what comes from the second
/// cache; of W and X a core brings in its share of the one outside and all of the other, as often
/// as that passes by where it does not stay in half of the cache.
double unit_cycles(const UnitConv& u, const UnitCut& cut, const Target& target) {
  const Pixels p = pixels_of(u, cut.row_tiles);
  const double rows = static_cast<double>(p.tiles * p.each),
               lanes = static_cast<double>(cut.lane_tiles);
  double points = 1, taps = 1, batch = 1;
  for (const LoopExtent& k : u.c.reduce) points *= static_cast<double>(k.extent);
  for (size_t n = 1; n + 1 < u.c.reduce.size(); ++n)
    taps *= static_cast<double>(u.c.reduce[n].extent);
  for (const LoopExtent& b : u.c.batch) batch *= static_cast<double>(b.extent);
  const double step = static_cast<double>(u.parts.steps * u.parts.group), line = 64;
  const double images = static_cast<double>(ceil_div(extent_of(u.c.rows), p.rows) *
                                            ceil_div(u.c.columns->extent, p.columns)) *
                        batch;
  const double panels =
      static_cast<double>(u.c.blocks->extent * u.c.lane.extent / (cut.lane_tiles * u.parts.lanes));
  const double l1 = static_cast<double>(target.l1d_bytes) / 2,
               l2 = static_cast<double>(target.l2_bytes) / 2;
  const double w = static_cast<double>(u.c.w_bytes), x = static_cast<double>(u.c.x_bytes);
  const double patch = 2 * rows * line * points / step / taps;
  const double cores = target.cores;
  const MemoryRates rates = memory_rates(target);
  double near = 0, far = 0;  // bytes of a step from the second cache; of a core from beyond
  if (cut.pixels_outside) {
    near = (w > l1 ? lanes * 16 * line : 0) + (patch > l1 ? 1 : 1 / panels) * rows * line / taps;
    far = x / cores + (w > l2 ? images / cores : 1) * w;
  } else {
    near = (w / panels > l1 ? lanes * 16 * line : 0) + rows * line / taps;
    far = w / cores + (x > l2 ? panels / cores : 1) * x;
  }
  const double dots =
      static_cast<double>(p.tiles) * lanes * unit_dot_cycles(p.each, cut.lane_tiles);
  const double cycles = std::max(dots, near / rates.near) * points / step;
  const double ends = 3 * rows * lanes + 60;
  return images * panels * (cycles + ends) / cores + far / rates.far / 2;
}

UnitCut best_cut(const UnitConv& u, const Target& target) {
  UnitCut best;
  double least = -1;
  for (int64_t lane_tiles = 1; lane_tiles <= 4; lane_tiles *= 2)
    for (int64_t row_tiles = 1; row_tiles <= 5; ++row_tiles)
      for (bool outside : {false, true}) {
        const UnitCut cut{row_tiles, lane_tiles, outside};
        const bool whole = u.c.lane.extent % (lane_tiles * u.parts.lanes) == 0;
        if (!whole || !tiles_fit(row_tiles, lane_tiles)) continue;
        const double cycles = unit_cycles(u, cut, target);
        if (least >= 0 && cycles >= least * 0.999) continue;
        least = cycles;
        best = cut;
      }
  return best;
}

UnitCut choose(const UnitConv& u, const Target& target, Knobs& knobs) {
  const UnitCut best = best_cut(u, target);
  const int64_t across = u.c.lane.extent / u.parts.lanes;
  std::vector<int64_t> widths;
  for (int64_t w : {1, 2, 4})
    if (across % w == 0) widths.push_back(w);
  UnitCut cut;
  cut.row_tiles = knobs.pick("row_tiles", {1, 2, 3, 4, 5}, best.row_tiles);
  cut.lane_tiles = knobs.pick("lane_tiles", widths, best.lane_tiles);
  cut.pixels_outside = knobs.flag("pixels_outside", best.pixels_outside);
  knobs.require(
      [](const Point& p) { return tiles_fit(p.number("row_tiles"), p.number("lane_tiles")); },
      "more tiles of sums than the unit has beside the operands'");
  return cut;
}

/// n ob oh ow o | .. i   ->   n [ob o.o] [oh.o ow.o] [oh.i] ow.i o.i .. i.o i.i, or the pixels
/// first
struct UnitLoops {
  std::vector<Loop> outer;
  Loop nest;  // the first of the tensorized ones
};

UnitLoops cut_loops(Schedule& s, const UnitConv& u, const UnitCut& cut) {
  StageSteps anchor = s[u.c.stage];
  const auto own = [&](const LoopExtent& l) { return Loop{u.c.stage, l.loop}; };
  const Pixels p = pixels_of(u, cut.row_tiles);
  std::vector<Loop> pixels, channels = {own(*u.c.blocks)}, nest;
  Loop columns = own(*u.c.columns), lanes = own(u.c.lane);
  if (u.c.rows && p.rows == 1) pixels.push_back(own(*u.c.rows));
  if (p.rows > 1 && p.rows < u.c.rows->extent) {
    const auto [o, i] = anchor.split(u.c.rows->loop, p.rows);
    pixels.push_back(o);
    nest.push_back(i);
  } else if (p.rows > 1) {
    nest.push_back(own(*u.c.rows));
  }
  if (p.columns < u.c.columns->extent) {
    const auto [o, i] = anchor.split(columns, p.columns);
    pixels.push_back(o);
    columns = i;
  }
  nest.push_back(columns);
  if (cut.lane_tiles * u.parts.lanes < u.c.lane.extent) {
    const auto [o, i] = anchor.split(lanes, cut.lane_tiles * u.parts.lanes);
    channels.push_back(o);
    lanes = i;
  }
  nest.push_back(lanes);
  for (size_t n = 0; n + 1 < u.c.reduce.size(); ++n) nest.push_back(own(u.c.reduce[n]));
  const auto [steps, terms] = anchor.split(u.c.reduce.back().loop, u.parts.group);
  nest.insert(nest.end(), {steps, terms});
  UnitLoops out;
  for (const LoopExtent& b : u.c.batch) out.outer.push_back(own(b));
  const auto &first = cut.pixels_outside ? pixels : channels,
             &second = cut.pixels_outside ? channels : pixels;
  out.outer.insert(out.outer.end(), first.begin(), first.end());
  out.outer.insert(out.outer.end(), second.begin(), second.end());
  out.nest = nest[0];
  std::vector<LoopRef> order(out.outer.begin(), out.outer.end());
  order.insert(order.end(), nest.begin(), nest.end());
  anchor.reorder(order);
  return out;
}

}  // namespace

void conv_unit_template(Schedule& s, Knobs& knobs) {
  const std::string anchor = roles(s.program()).anchor;
  const auto c = find_blocked_conv(s.program(), anchor, s.target());
  TENON_CHECK(c, "conv_unit_template on a program without a convolution in blocks of channels");
  const auto unit = find_conv_dots(s.program(), *c, s.target(), DotUnit::tiles);
  TENON_CHECK(unit, "conv_unit_template on a convolution that no matrix unit has");
  const UnitConv u{*c, *unit, parts_of(**unit)};
  const UnitCut cut = choose(u, s.target(), knobs);
  const bool ahead = is_constant(s.program(), c->w_buffer);
  s.pack(c->w_buffer, grouped_weights(*c, u.parts.group, cut.lane_tiles * u.parts.lanes),
         {ahead ? PackWhen::ahead : PackWhen::run_time});
  const UnitLoops l = cut_loops(s, u, cut);
  std::vector<std::string> done = {anchor};
  for (const std::string& stage : fuse_epilogue(s, l.outer.back())) {
    done.push_back(stage);
    finish_map_in_loop(s, stage, l.outer.back());
  }
  s[anchor].tensorize(l.nest, u.unit);
  fuse_and_parallel(s, anchor, l.outer);
  schedule_rest(s, done);
}

}  // namespace tenon
