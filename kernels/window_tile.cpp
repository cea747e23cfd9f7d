#include "kernels/window_tile.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "schedule/composites/cost.h"

namespace tenon {
namespace {

/// What a row of a copy costs beside its vectors: its loop, and loads that wait for its stores.
constexpr double kCopiedRowCycles = 8;

/// Cycles that a line from beyond the second cache comes late, for each row beside it (measured);
/// of these, one from that cache waits the share.
constexpr double kLateCycles = 0.6, kNearShare = 0.25;

/// Of the second caches, what X and the result may take and stay in them from call to call.
constexpr double kStays = 0.9;

/// A tile of several vectors side by side takes so much longer than the same in rows (measured).
constexpr double kSideBySide = 1.06;

/// Rows of X that so many rows of a tile read, over all taps of a column.
int64_t rows_read(const Contraction& c, int64_t rows) {
  const Windows& w = *c.windows;
  const int64_t taps = c.reduce[w.taps].extent, apart = std::gcd(w.step, w.dilation);
  return std::min(rows * taps, ((rows - 1) * w.step + (taps - 1) * w.dilation) / apart + 1);
}

/// Cycles that a line comes late where so many short rows are read side by side, of which the
/// prefetchers follow few: most where X and the result do not stay in the second caches from one
/// call to the next, some where they come from there.
double late_cycles(const Contraction& c, int64_t rows, const Target& target) {
  const Windows& w = *c.windows;
  const int64_t results = c.extra->extent * c.vector.extent;
  double bytes = static_cast<double>(results * (w.step * w.vector_step + 1) * byte_size(c.dtype));
  for (const auto& loops : {c.batch, c.outer})
    for (const LoopExtent& l : loops) bytes *= static_cast<double>(l.extent);
  const bool far = bytes > kStays * static_cast<double>(target.cores * target.l2_bytes);
  const double share = far ? 1 : bytes > static_cast<double>(target.l1d_bytes) ? kNearShare : 0;
  return share * kLateCycles * static_cast<double>(rows - 1);
}

/// A copy of a channel of X with its border: a load and a store for each vector.
double copy_cycles(const Contraction& c, const Target& target) {
  const Windows& w = *c.windows;
  const int64_t taps = c.reduce[w.taps].extent, lanes = target.lanes(c.dtype);
  const int64_t rows = (c.extra->extent - 1) * w.step + (taps - 1) * w.dilation + 1;
  const int64_t vectors = ceil_div(c.vector.extent * w.vector_step + taps - 1, lanes);
  return static_cast<double>(rows) * (2 * static_cast<double>(vectors) + kCopiedRowCycles);
}

/// One tile of so many rows of `width` elements.
double cycles_of_tile(const Contraction& c, int64_t rows, int64_t width, const Target& target) {
  const int64_t lanes = target.lanes(c.dtype), points = points_in(c.reduce);
  const int64_t vectors = ceil_div(width, lanes), of_one = std::min(width, lanes);
  // Where there is but one vector it is no longer than it must be.
  const int64_t held = vectors > 1 ? lanes : static_cast<int64_t>(std::bit_ceil(uint64_t(of_one)));
  const bool picks = c.windows->vector_step > 1, masked = width % held != 0;
  const int64_t columns = points / c.reduce[c.windows->taps].extent;
  const auto sums = static_cast<double>(rows * vectors);
  const auto row_reads = static_cast<double>(rows_read(c, rows) * columns);
  const double reads = row_reads * static_cast<double>(vectors);
  const double lines =
      1 + std::min(1.0, static_cast<double>(held * byte_size(c.dtype)) / target.cache_line_bytes);
  const double loads = (picks ? 2 : 1) * reads * lines / 2;
  const double steps =
      (sums * static_cast<double>(points) + (picks ? reads : 0) + (masked ? row_reads : 0)) / 2;
  const bool kept = window_registers(rows, vectors) + points < target.vector_registers;
  const double together = vectors > 1 && !picks ? kSideBySide : 1;
  return together * (std::max({steps, loads, 2 * static_cast<double>(points)}) + 0.2 * loads +
                     2 * sums + 4 + (kept ? 0 : static_cast<double>(points))) +
         (picks ? 2 : 1) * sums * late_cycles(c, rows, target);
}

}  // namespace

double window_cycles(const Contraction& c, const RegisterTile& tile, const Target& target) {
  const int64_t lanes = target.lanes(c.dtype);
  double total = 0;
  each_tile(c.extra->extent, tile.extra, [&](double row_tiles, int64_t rows) {
    each_tile(c.vector.extent, tile.vectors * lanes, [&](double tiles, int64_t width) {
      total += row_tiles * tiles * cycles_of_tile(c, rows, width, target);
    });
  });
  return total;
}

WindowTile best_window_tile(const Contraction& c, bool padded, const Target& target) {
  const int64_t points = points_in(c.reduce), free = registers_free(target),
                most_vectors = ceil_div(c.vector.extent, target.lanes(c.dtype));
  WindowTile best;
  std::optional<double> least;
  for (int64_t rows = 1; rows <= std::min(c.extra->extent, kMostWindowRows); ++rows)
    for (int64_t vectors = 1; vectors <= most_vectors; ++vectors) {
      if (window_registers(rows, vectors) > free) break;
      const RegisterTile tile{1, rows, vectors};
      const bool inlined = padded && rows * vectors * points <= kMostWindowCode;
      const double copy = padded && !inlined ? copy_cycles(c, target) : 0;
      const double cycles = window_cycles(c, tile, target) + copy;
      if (least && cycles >= *least * 0.999) continue;
      least = cycles;
      best = {tile, inlined};
    }
  return best;
}

}  // namespace tenon
