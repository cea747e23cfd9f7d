#include "kernels/blocking.h"

#include <tenon/schedule/work.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedule/composites/cost.h"

namespace tenon {
namespace {

/// Cycles to copy a line into a panel, beside reading it.
constexpr double kCopyCycles = 8;
/// Cycles to ask for a line of the next panel.
constexpr double kFetchCycles = 1.5;
/// Bytes of a row that could be read in the time it takes the prefetchers to notice a new one.
constexpr double kNoticeBytes = 512;
/// Ways of the second cache.
constexpr int64_t kWays = 16;
/// Cycles lost by a load across two lines of the first cache, and of the second.
constexpr double kSplitCycles = 0.2, kFarSplitCycles = 0.5;
/// Cycles to come back to a line of results that the tile beside has begun.
constexpr double kBorderCycles = 1.5;
/// Cycles to take over a line that another core writes a part of.
constexpr double kSharedCycles = 70;
/// Cycles to go on to a page whose translation has fallen out of the first TLB.
constexpr double kTurnCycles = 1;

struct Sizes {
  double batch = 1;
  int64_t m = 1, n = 1, k = 1, lanes = 1, bytes = 4;
  double step_cost = 1;
  MemoryRates rates = {};
};

Sizes sizes_of(const Contraction& c, const Target& target) {
  Sizes s;
  for (const LoopExtent& b : c.batch) s.batch *= static_cast<double>(b.extent);
  s.m = extent_of(c.rows);
  s.n = c.vector.extent;
  s.k = c.reduce[0].extent;
  s.lanes = target.lanes(c.dtype);
  s.bytes = byte_size(c.dtype);
  s.step_cost = c.step_cost;
  s.rates = memory_rates(target);
  return s;
}

/// The blocking in numbers of this product.
struct Cut {
  int64_t width, tiles, panels, blocks;  // columns of a tile; tiles; tiles a block; blocks
  int64_t k_block, k_blocks, piece;      // steps a block; blocks of k; rows a piece
};

Cut cut(const Sizes& s, const Blocking& b) {
  Cut c;
  c.width = b.tile.vectors * s.lanes;
  c.tiles = ceil_div(s.n, c.width);
  c.panels = b.panels > 0 ? std::min(b.panels, c.tiles) : c.tiles;
  c.blocks = ceil_div(c.tiles, c.panels);
  c.k_block = b.k_block > 0 ? std::min(b.k_block, s.k) : s.k;
  c.k_blocks = ceil_div(s.k, c.k_block);
  c.piece = ceil_div(ceil_div(s.m, b.row_pieces), b.tile.rows) * b.tile.rows;
  return c;
}

/// How the vectors of X reach the registers.
struct Stream {
  double cycles;  // that one vector takes
  double split;   // the part of the vectors that lie across two lines
  double wait;    // cycles that such a vector holds up the work, whatever else is done meanwhile
};

/// Cycles of one step of a tile: multiply-adds and loads two a cycle, the panel's stream, the
/// latency of an accumulator.
double step_cycles(double rows, double vectors, double cost, const Stream& x) {
  const double fma = cost * rows * vectors / 2, loads = (rows + vectors * (1 + x.split)) / 2;
  return std::max({fma, loads, vectors * x.cycles, 4.0}) + 0.2 * loads + vectors * x.split * x.wait;
}

/// Start and end of a tile: the accumulators come from and go to memory, sums of a part of k from
/// and to the second cache where the first does not hold them, and the loop's last branch is
/// mispredicted. `split`: the part of them that lie across two lines, where each way takes twice;
/// a row's last line is shared with the tile beside.
double end_cycles(double rows, double vectors, bool partial, bool far, double split) {
  const double way = !partial ? 1.0 : far ? 3.0 : 1.5, twice = partial ? 1.5 : 1.0;
  return rows * (vectors * (way + twice * split) + kBorderCycles * split) + 20;
}

/// The part of the vectors of whole rows that lie across two lines.
double split_part(const Sizes& s, const Target& target) {
  const int64_t vector = target.vector_bits / 8;
  return 1 - static_cast<double>(std::gcd(s.n * s.bytes, vector)) / static_cast<double>(vector);
}

/// A piece of each of so many rows, `row` bytes apart, stays in that part of a cache whose sets,
/// which repeat after `way` bytes, the pieces fall into.
bool stays_near(double rows, int64_t piece, int64_t row, double cache, int64_t way = kPage) {
  const double apart = static_cast<double>(std::gcd(row, way));
  const double bytes = static_cast<double>(piece);
  return rows * bytes <= cache * std::min(1.0, bytes / apart);
}

/// How the first row of tiles over a block of X gets it, and how the others do.
struct Streams {
  Stream first, next;
};

Streams streams_of_x(const Sizes& s, const Blocking& b, const Cut& c, const Target& target,
                     bool in_panels) {
  const int64_t row = s.n * s.bytes;
  const bool pieces = !in_panels && c.width < s.n;
  const double piece = std::gcd(row, kPage) >= 2048 ? s.rates.conflict : s.rates.piece;
  const double split = in_panels ? 0 : split_part(s, target);
  const Stream far{target.vector_bits / 8.0 / (pieces ? piece : s.rates.near), split,
                   kFarSplitCycles};
  const int64_t block = (b.panels_outside ? 1 : c.panels) * c.width * s.bytes;
  const bool near = stays_near(static_cast<double>(c.k_block), block, in_panels ? block : row,
                               target.l1d_bytes / 2.0);
  return {far, near ? Stream{0.5, split, kSplitCycles} : far};
}

double compute_cycles(const Sizes& s, const Blocking& b, const Cut& c, const Target& target,
                      bool in_panels) {
  const Streams x = streams_of_x(s, b, c, target, in_panels);
  const int64_t columns = std::min(s.n, c.panels * c.width);
  const bool partial = c.k_blocks > 1;
  const bool far = !stays_near(static_cast<double>(c.piece), columns * s.bytes, s.n * s.bytes,
                               target.l1d_bytes / 4.0);
  const double split = split_part(s, target);
  const double passes = static_cast<double>(ceil_div(c.piece, b.tile.rows));
  double total = 0;
  each_tile(s.m, b.tile.rows, [&](double row_tiles, int64_t rows) {
    each_tile(s.n, c.width, [&](double tiles, int64_t width) {
      const double r = static_cast<double>(rows), v = static_cast<double>(ceil_div(width, s.lanes));
      const double next = step_cycles(r, v, s.step_cost, x.next);
      const double step = next + (step_cycles(r, v, s.step_cost, x.first) - next) / passes;
      total += row_tiles * tiles *
               (static_cast<double>(s.k) * step +
                static_cast<double>(c.k_blocks) * end_cycles(r, v, partial, far, split));
    });
  });
  return s.batch * total;
}

/// A block of X that fills the second cache comes in part from beyond it again for each row of
/// tiles.
double reread_cycles(const Sizes& s, const Blocking& b, const Cut& c, double l2) {
  const double block = static_cast<double>(c.k_block * s.bytes) *
                       static_cast<double>(std::min(s.n, c.panels * c.width));
  const double missing = std::clamp(block / l2 - 1.05, 0.0, 1.0);
  const double passes = static_cast<double>(ceil_div(c.piece, b.tile.rows));
  return missing * static_cast<double>(b.row_pieces) * (passes - 1) *
         static_cast<double>(s.k * s.n * s.bytes) / s.rates.far;
}

/// How much longer it takes to read the rows of a block where they are parts of longer ones.
double notice(const Sizes& s, const Cut& c) {
  const int64_t piece = c.panels * c.width;
  return piece < s.n ? 1 + kNoticeBytes / static_cast<double>(piece * s.bytes) : 1;
}

/// The part of X that one core reads again at the next call, in bytes.
double share_of_core(const Sizes& s, const Blocking& b, const Cut& c, const Target& target) {
  const double x = static_cast<double>(s.k * s.n * s.bytes);
  if (b.row_pieces > 1 || s.batch > 1) return x;
  return x * static_cast<double>(ceil_div(c.blocks, target.cores)) / static_cast<double>(c.blocks);
}

/// Cycles to turn to pages of X that do not all stay open: those of a block are turned to once a
/// block of columns where they do, by each tile where they do not.
double turn_cycles(const Sizes& s, const Blocking& b, const Cut& c) {
  const double of_row = std::min<double>(kPage, s.n * s.bytes) / kPage;
  const double pages = static_cast<double>(s.k) * of_row;
  if (pages <= kOpenPages) return 0;
  const bool open = static_cast<double>(c.k_block) * of_row <= kOpenPages;
  const int64_t times = open ? c.blocks : c.tiles * ceil_div(c.piece, b.tile.rows);
  return static_cast<double>(b.row_pieces * times) * pages * kTurnCycles;
}

/// X read in place for the first time, slower where more rows are open than there are translations,
/// and much slower each time where they fall out. What one core reads may be in its second cache
/// still.
double unpacked_cycles(const Sizes& s, const Blocking& b, const Cut& c, const Target& target) {
  const double x = static_cast<double>(s.k * s.n * s.bytes);
  const double passes = static_cast<double>(ceil_div(c.piece, b.tile.rows));
  const double of_row = std::min<double>(kPage, s.n * s.bytes) / kPage;
  const double pages = static_cast<double>(c.k_block) * of_row;
  const double far = pages <= kOpenPages / 2 ? s.rates.far : s.rates.miss;
  const double l2 = static_cast<double>(target.l2_bytes);
  if (share_of_core(s, b, c, target) <= 0.6 * l2) return turn_cycles(s, b, c);
  double cycles = x / far * notice(s, c);
  if (pages > kOpenPages && x > l2 / 4) cycles += passes * x / 64 * 10;
  return static_cast<double>(b.row_pieces) * cycles;
}

/// Panels are read once a piece of rows, the next one fetched during the work on this one.
double fetched_cycles(const Sizes& s, const Blocking& b, const Cut& c) {
  const double bytes = static_cast<double>(b.row_pieces * s.k * s.n * s.bytes);
  const double work = static_cast<double>(c.piece * c.width / s.lanes) / 2;  // a step of a panel
  const double fetch = static_cast<double>(c.width * s.bytes) / s.rates.far;
  return bytes / 64 * kFetchCycles + std::max(0.0, 1 - 0.5 * work / fetch) * bytes / s.rates.far;
}

/// X copied once a piece of rows: it is read in order and written to the second cache; elements
/// that are no neighbours go one by one.
double packing_cycles(const Contraction& c, const Sizes& s, const Blocking& b, const Cut& parts) {
  const double x = static_cast<double>(s.k * s.n * s.bytes);
  const double line = c.x_contiguous ? 64 / s.rates.far * notice(s, parts) + kCopyCycles
                                     : 64.0 / static_cast<double>(s.bytes) * 2;
  return static_cast<double>(b.row_pieces) * x / 64 * line;
}

/// How X reaches the tiles for the first time: panels that were made ahead in order, where none is
/// fetched, so that the first row of tiles waits for them. Nobody fetches the first of the pieces
/// that are read in place.
double first_cycles(const Contraction& c, const Sizes& s, const Blocking& b, const Cut& parts,
                    const Target& target, bool ahead) {
  const double x = static_cast<double>(b.row_pieces * s.k * s.n * s.bytes);
  if (b.panels_outside && ahead) return fetched_cycles(s, b, parts);
  if (b.panels_outside)
    return fetched_cycles(s, b, parts) + turn_cycles(s, b, parts) +
           x / static_cast<double>(parts.panels) / s.rates.miss;
  if (ahead) return x / s.rates.far;
  return b.packed ? packing_cycles(c, s, b, parts) : unpacked_cycles(s, b, parts, target);
}

/// What W and the partial results cost beyond the second cache; half of it hides behind the work.
double traffic_cycles(const Sizes& s, const Blocking& b, const Cut& c, double l2) {
  const double w = static_cast<double>(s.m * s.k * s.bytes);
  if (b.panels_outside) {
    // W passes by once a panel; what does not stay in the second cache beside two panels comes from
    // beyond it, steadily enough for the prefetchers to hide more than half.
    const double near = static_cast<double>((c.piece + 2 * c.width) * c.k_block * s.bytes);
    const double missing = std::clamp((near - l2) / (2 * l2), 0.0, 1.0);
    const double part = static_cast<double>(c.piece * std::min(s.n, c.panels * c.width) * s.bytes);
    const double results =
        part > l2 ? static_cast<double>((c.k_blocks - 1) * s.m * s.n * s.bytes) : 0;
    return (missing * 0.4 * static_cast<double>(c.tiles) * w + results) / s.rates.far;
  }
  const double part = static_cast<double>(c.piece * s.bytes) *
                      static_cast<double>(std::min(s.n, c.panels * c.width));
  const double results = static_cast<double>(s.m * s.n * s.bytes);
  double cycles = 0;
  if (w > l2) cycles += 0.5 * static_cast<double>(c.blocks) * w / s.rates.far;
  if (part > l2) cycles += static_cast<double>(c.k_blocks - 1) * results / s.rates.far;
  return cycles;
}

std::vector<int64_t> k_blocks(int64_t k) {
  std::vector<int64_t> out = {0};
  for (int64_t most : {16, 32, 64, 128, 256, 512, 1024})
    if (k >= most + most / 2)
      out.push_back(ceil_div(ceil_div(k, ceil_div(k, most)), kSteps) * kSteps);
  return out;
}

/// Tiles a block so that the threads share the columns evenly and a block fits the second cache, or
/// half of the first.
std::vector<int64_t> panel_counts(const Sizes& s, const RegisterTile& tile, int64_t k_block,
                                  const Target& target) {
  const int64_t width = tile.vectors * s.lanes, tiles = ceil_div(s.n, width);
  const int64_t rows = k_block > 0 ? k_block : s.k;
  const int64_t fit =
      std::max<int64_t>(1, target.l2_bytes / 2 / std::max<int64_t>(1, rows * width * s.bytes));
  std::vector<int64_t> out = {0};
  const auto add = [&](int64_t blocks) {
    const int64_t panels = ceil_div(tiles, std::max<int64_t>(blocks, 1));
    if (panels < tiles && std::find(out.begin(), out.end(), panels) == out.end())
      out.push_back(panels);
  };
  add(ceil_div(tiles, fit));
  add(target.cores);
  add(ceil_div(ceil_div(tiles, fit), target.cores) * target.cores);
  const int64_t near = target.l1d_bytes / 2 / std::max<int64_t>(1, rows * width * s.bytes);
  if (near > 0) add(ceil_div(tiles, near));
  return out;
}

/// The few tiles that do most for one step and waste least on the rests.
std::vector<RegisterTile> good_tiles(const Sizes& s, const Target& target, bool in_panels) {
  std::vector<std::pair<double, RegisterTile>> all;
  const int64_t width = ceil_div(s.n, s.lanes), most_rows = 16;
  for (int64_t rows = 1; rows <= std::min(s.m, most_rows); ++rows)
    for (int64_t vectors = 1; vectors <= std::min<int64_t>(width, 8); ++vectors) {
      const Blocking b{{rows, 1, vectors}};
      if (registers_used(b.tile) > registers_free(target)) break;
      all.emplace_back(compute_cycles(s, b, cut(s, b), target, in_panels), b.tile);
    }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RegisterTile> out;
  for (size_t n = 0; n < std::min<size_t>(all.size(), 8); ++n) out.push_back(all[n].second);
  return out;
}

/// Two whole panels leave a third of the second cache, and the steps are many enough that the first
/// panel of a block, which nobody fetched, does not count.
bool panel_fits(const Sizes& s, const RegisterTile& tile, int64_t k_block, const Target& target) {
  const int64_t steps = k_block > 0 ? k_block : s.k;
  return s.m > 2 * tile.rows && s.k >= 64 && (k_block == 0 || k_block > 512) &&
         2 * steps * tile.vectors * s.lanes * s.bytes <= target.l2_bytes / 3 * 2;
}

/// X comes from beyond the second cache, where two pieces of its rows stay beside a block of W and
/// all results while the rows of tiles pass over one of them. Rows a part of a page apart would not
/// let them stay in the first.
bool piece_fits(const Sizes& s, const RegisterTile& tile, int64_t k_block, const Target& target) {
  const int64_t row = s.n * s.bytes, piece = tile.vectors * s.lanes * s.bytes;
  return k_block > 0 && s.m > 2 * tile.rows && row * s.k > target.l2_bytes / 2 &&
         std::gcd(row, kPage) < kPage / 2 &&
         k_block * (2 * piece + s.m * s.bytes) + s.m * row <= target.l2_bytes / 4 * 3 &&
         stays_near(2.0 * static_cast<double>(k_block), piece, row, target.l2_bytes / 2.0,
                    target.l2_bytes / kWays);
}

/// Pieces of the rows: for the threads, or so that the part of W stays in the second cache beside
/// two panels.
std::vector<int64_t> piece_counts(const Sizes& s, const RegisterTile& tile, int64_t k_block,
                                  bool panels_outside, const Target& target) {
  std::vector<int64_t> out = {1};
  const auto add = [&](int64_t n) {
    if (n > 1 && std::find(out.begin(), out.end(), n) == out.end()) out.push_back(n);
  };
  add(target.cores);
  if (!panels_outside) return out;
  for (int64_t cache : {target.l2_bytes / 2, target.l2_bytes / 4 * 3}) {
    const int64_t rows = cache / ((k_block > 0 ? k_block : s.k) * s.bytes);
    const int64_t fit = rows - 2 * tile.vectors * s.lanes;
    if (fit < tile.rows) continue;
    add(ceil_div(s.m, fit));
    add(ceil_div(ceil_div(s.m, fit), target.cores) * target.cores);
  }
  return out;
}

}  // namespace

bool is_matrix_product(const Contraction& c) {
  const auto single = [](const LoopExtent& l) { return l.extent == 1; };
  return (!c.rows || c.rows_group == 0) && (!c.extra || single(*c.extra)) &&
         std::all_of(c.outer.begin(), c.outer.end(), single) && c.reduce.size() == 1 &&
         !c.x_buffer.empty();
}

double blocked_cycles(const Contraction& c, const Blocking& b, const Target& target, bool ahead) {
  const Sizes s = sizes_of(c, target);
  const Cut parts = cut(s, b);
  const double l2 = static_cast<double>(target.l2_bytes) / 2;
  double total = compute_cycles(s, b, parts, target, ahead || b.packed);
  total += s.batch * first_cycles(c, s, b, parts, target, ahead);
  total += s.batch * traffic_cycles(s, b, parts, l2);
  if (!b.panels_outside) total += s.batch * reread_cycles(s, b, parts, l2);
  const double pieces = s.batch * static_cast<double>(b.row_pieces * parts.blocks);
  const double cores = std::min<double>(target.cores, pieces);
  if (cores <= 1) return total;
  const double rows = static_cast<double>(parts.piece) / static_cast<double>(s.m);
  const double columns = static_cast<double>(parts.panels * parts.width) / static_cast<double>(s.n);
  const double share = std::min(1.0, rows) * std::min(1.0, columns) / s.batch;
  const double shared_lines = parts.blocks > 1 && s.batch == 1
                                  ? split_part(s, target) * static_cast<double>(parts.piece)
                                  : 0;
  return total * std::min(1.0, std::ceil(pieces / cores) * share) + kForkCycles +
         shared_lines * kSharedCycles;
}

Blocking best_blocking(const Contraction& c, const Target& target, bool ahead) {
  const Sizes s = sizes_of(c, target);
  Blocking best;
  double least = -1;
  const auto consider = [&](const Blocking& b) {
    const double cycles = blocked_cycles(c, b, target, ahead);
    if (least >= 0 && cycles >= least * 0.999) return;
    least = cycles;
    best = b;
  };
  for (bool packed : {false, true}) {
    if ((ahead && packed) || (c.in_panels && !ahead && !packed)) continue;
    for (const RegisterTile& tile : good_tiles(s, target, ahead || packed)) {
      if (!packed && !ahead && !c.x_contiguous && s.m > 2 * tile.rows) continue;
      for (int64_t k_block : k_blocks(s.k))
        for (bool outside : {false, true}) {
          if (outside && (packed || !(ahead ? panel_fits(s, tile, k_block, target)
                                            : piece_fits(s, tile, k_block, target))))
            continue;
          for (int64_t panels : panel_counts(s, tile, k_block, target))
            for (int64_t pieces : piece_counts(s, tile, k_block, outside, target))
              consider({tile, k_block, panels, pieces, packed, outside});
        }
    }
  }
  return best;
}

Blocking tile_blocking(const Contraction& c, const Target& target, int64_t side, bool ahead) {
  const Sizes s = sizes_of(c, target);
  const int64_t row_tiles = ceil_div(s.m, side), column_tiles = ceil_div(s.n, side);
  const int64_t rows = column_tiles == 1 ? std::min<int64_t>(row_tiles, 3)
                                         : std::min<int64_t>(row_tiles, 2),
                columns = rows == 1 ? std::min<int64_t>(column_tiles, 4)
                                    : std::min<int64_t>(column_tiles, 2);
  Blocking b;
  b.tile = {rows * side, 1, columns};
  b.packed = true;
  const int64_t width = columns * side, panels = ceil_div(s.n, width);
  const int64_t half = target.l2_bytes / 2, pieces = ceil_div(row_tiles, rows);
  b.panels_outside = ahead && s.k * s.bytes * s.m <= half && s.k * s.bytes * s.n > half;
  const int64_t fit = std::max<int64_t>(1, half / (s.k * s.bytes * width));
  const int64_t blocks = b.panels_outside ? 1 : ceil_div(panels, fit);
  const double done = s.batch * static_cast<double>(blocks), cores = target.cores;
  const bool busy = done / cores >= 0.9 * std::ceil(done / cores);
  const bool by_rows = !busy && s.m >= s.n && pieces >= target.cores;
  const int64_t shared = busy || by_rows ? blocks : ceil_div(blocks, target.cores) * target.cores;
  if (shared > 1) b.panels = ceil_div(panels, shared);
  if (by_rows) b.row_pieces = std::min<int64_t>(pieces, target.cores);
  return b;
}

}  // namespace tenon
