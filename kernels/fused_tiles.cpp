#include <algorithm>
#include <cmath>

#include "kernels/fused_products.h"
#include "schedule/composites/cost.h"

namespace tenon {
namespace {

/// Cycles for a vector of exponentials and what belongs to them, and for a step of a maximum or a
/// sum that waits for the one before.
constexpr double kExpCycles = 12, kFoldCycles = 4;
/// Cycles to add up the lanes of a dot product, and to transpose a row of a square in registers.
constexpr double kDotCycles = 6, kTransposeCycles = 5;
/// What a load costs beside multiply-adds that it does not hold up.
constexpr double kLoadCycles = 0.2;

struct Sizes {
  double batch = 1, tiles = 1;         // tiles of columns, which follow each other
  int64_t m = 1, n = 1, d = 1, e = 1;  // rows, columns between, steps of the first, columns out
  int64_t lanes = 1, vector_bytes = 64, near_bytes = 0;
  double l2_bytes = 0;
  MemoryRates rates = {};
  bool contiguous = false;  // the first product's X along the columns
};

Sizes sizes_of(const FusedProducts& f, const Target& target) {
  Sizes s;
  for (const LoopExtent& b : f.second.batch) s.batch *= static_cast<double>(b.extent);
  if (!f.fold.empty()) {
    s.tiles = static_cast<double>(f.tiles.extent);
    s.batch /= s.tiles;
  }
  s.m = f.second.rows->extent;
  s.n = f.second.reduce[0].extent;
  s.d = f.first.reduce[0].extent;
  s.e = f.second.vector.extent;
  s.lanes = target.lanes(f.second.dtype);
  s.vector_bytes = target.vector_bits / 8;
  s.near_bytes = target.l1d_bytes / 2;
  s.l2_bytes = static_cast<double>(target.l2_bytes);
  s.rates = memory_rates(target);
  s.contiguous = f.first.x_contiguous;
  return s;
}

/// A product on tiles of rows x vectors: for each step multiply-adds and loads (two a cycle each),
/// what comes from the second cache, the latency of an accumulator; for each tile its ends.
double product_cycles(const Sizes& s, int64_t rows, int64_t tile_rows, int64_t columns,
                      int64_t vectors, int64_t steps) {
  double total = 0;
  each_tile(rows, tile_rows, [&](double row_tiles, int64_t r) {
    each_tile(ceil_div(columns, s.lanes), vectors, [&](double tiles, int64_t v) {
      const double loads = static_cast<double>(r + v) / 2;
      const int64_t panel = v * s.vector_bytes;
      const double stream =
          steps * panel > s.near_bytes ? static_cast<double>(panel) / s.rates.near : 0;
      const double step = std::max({static_cast<double>(r * v) / 2, loads, stream, 4.0});
      const double ends = static_cast<double>(2 * r * v + 12);
      total += row_tiles * tiles *
               (static_cast<double>(steps) * (step + 2 * kLoadCycles * loads) + ends);
    });
  });
  return total;
}

double first_cycles(const Sizes& s, const FusedTiles& t, int64_t rows) {
  if (t.rows_in_lanes) return product_cycles(s, s.n, t.keys, rows, t.vectors, s.d);
  if (s.contiguous) return product_cycles(s, rows, t.rows, s.n, t.vectors, s.d);
  return static_cast<double>(rows * s.n) *
         (static_cast<double>(ceil_div(s.d, s.lanes)) + kDotCycles);
}

double second_cycles(const Sizes& s, const FusedTiles& t, int64_t rows) {
  return product_cycles(s, rows, t.rows, s.e, t.value_vectors, s.n);
}

/// Scores and exponentials are written and read five times in all; half of what comes from the
/// second cache, where the first does not hold both, hides behind the work.
double near_cycles(const Sizes& s, double vectors) {
  const double bytes = static_cast<double>(s.n * s.vector_bytes) * vectors;
  return 2 * bytes > static_cast<double>(2 * s.near_bytes) ? 0.5 * 5 * bytes / s.rates.near : 0;
}

/// Maxima, exponentials, sums, and the rows of the first product brought into the lanes.
double between_cycles(const Sizes& s, const FusedTiles& t, int64_t rows) {
  if (!t.rows_in_lanes)
    return static_cast<double>(rows * ceil_div(s.n, s.lanes)) * (kExpCycles + 2) +
           static_cast<double>(rows) * 10 * kDotCycles;
  const double vectors = static_cast<double>(ceil_div(rows, s.lanes));
  return static_cast<double>(s.n) *
             (vectors * kExpCycles + 2 * std::max(kFoldCycles, vectors / 2)) +
         static_cast<double>(s.d) * vectors * kTransposeCycles + near_cycles(s, vectors);
}

/// The other operands come again for each block where the second cache does not hold them all; half
/// of that hides behind the work.
double stream_cycles(const Sizes& s, const FusedTiles&, int64_t) {
  const double bytes =
      s.tiles * static_cast<double>(s.n * (s.d + s.e) * (s.vector_bytes / s.lanes));
  return bytes > s.l2_bytes / 2 ? 0.5 * bytes / s.tiles / s.rates.far : 0;
}

/// The sum of a part's cycles over all blocks.
double over_blocks(const Sizes& s, const FusedTiles& t,
                   double (*part)(const Sizes&, const FusedTiles&, int64_t)) {
  double total = 0;
  each_tile(s.m, t.block(s.lanes),
            [&](double blocks, int64_t rows) { total += blocks * part(s, t, rows); });
  return total;
}

double whole_cycles(const Sizes& s, const FusedTiles& t, const Target& target) {
  const double pieces = s.batch * static_cast<double>(ceil_div(s.m, t.block(s.lanes)));
  const double cores = std::min<double>(target.cores, pieces);
  const double share = std::ceil(pieces / cores) / pieces;
  return s.batch * s.tiles * share *
         (over_blocks(s, t, first_cycles) + over_blocks(s, t, second_cycles) +
          over_blocks(s, t, between_cycles) + over_blocks(s, t, stream_cycles));
}

}  // namespace

int64_t FusedTiles::block(int64_t lanes) const { return rows_in_lanes ? vectors * lanes : rows; }

FusedTiles best_tiles(const FusedProducts& f, const Target& target) {
  const Sizes s = sizes_of(f, target);
  const int64_t free = registers_free(target), value_vectors = ceil_div(s.e, s.lanes);
  FusedTiles best;
  double least = -1;
  const auto fits = [&](int64_t rows, int64_t vectors) {
    return registers_used({rows, 1, vectors}) <= free;
  };
  // The tile of the second product, for what is already decided.
  const auto finish = [&](FusedTiles t) {
    const int64_t block = t.block(s.lanes);
    for (t.rows = t.rows_in_lanes ? 1 : block; t.rows <= std::min<int64_t>(block, 16); ++t.rows)
      for (t.value_vectors = 1; t.value_vectors <= std::min<int64_t>(value_vectors, 8);
           ++t.value_vectors) {
        if (block % t.rows != 0 || !fits(t.rows, t.value_vectors)) continue;
        const double cycles = whole_cycles(s, t, target);
        if (least >= 0 && cycles >= least * 0.999) continue;
        least = cycles;
        best = t;
      }
  };
  for (int64_t v = 1; v <= std::min<int64_t>(4, ceil_div(s.m, s.lanes)); ++v) {
    FusedTiles t = {true, v}, tried = t;
    double first = -1;
    for (tried.keys = 1; tried.keys <= std::min<int64_t>(s.n, 14) && fits(tried.keys, v);
         ++tried.keys) {
      if (!f.fold.empty() && s.n % tried.keys != 0) continue;
      const double cycles = over_blocks(s, tried, first_cycles);
      if (first >= 0 && cycles >= first * 0.999) continue;
      first = cycles;
      t = tried;
    }
    finish(t);
  }
  for (int64_t rows = 1; rows <= std::min<int64_t>(s.m, 8); ++rows)
    for (int64_t v = 1; v <= (s.contiguous ? std::min<int64_t>(ceil_div(s.n, s.lanes), 4) : 1);
         ++v) {
      const bool whole = f.fold.empty() || !s.contiguous || s.n % (v * s.lanes) == 0;
      if (whole && fits(rows, v)) finish({false, v, 1, rows});
    }
  return best;
}

}  // namespace tenon
