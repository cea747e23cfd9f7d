#pragma once
#include "kernels/contraction.h"

namespace tenon {

// Convolutions of each channel by itself (Contraction::windows): a tile of rows (`extra`) by
// vectors, whose rows share what they read.

/// Vector operations that may be written out for one tile.
constexpr int64_t kMostWindowCode = 512;

/// Most rows of a tile.
constexpr int64_t kMostWindowRows = 14;

/// Vector registers that a tile keeps busy: sums, and the rows of X that the next tap reads again.
inline int64_t window_registers(int64_t rows, int64_t vectors) { return 2 * rows * vectors + 1; }

struct WindowTile {
  RegisterTile tile;     ///< of one row of W
  bool inlined = false;  ///< the border is left out by masks; no copy of X has it
};

/// Estimated cycles of a channel: for each tile the longer of its multiply-adds (two a cycle, with
/// what picks every second element and what masks cost), its loads (two lines a cycle, of which
/// unaligned vectors take more than one) and the latency of a sum (four a tap, of which two tiles
/// share), a little for each load, its ends, the taps of W where no register keeps them, and lines
/// that come late.
double window_cycles(const Contraction& c, const RegisterTile& tile, const Target& target);

/// The tile of least estimated cycles that fits the registers. `padded`: X is a copy with a border,
/// which takes its time as well where the taps are too many to be written out.
WindowTile best_window_tile(const Contraction& c, bool padded, const Target& target);

}  // namespace tenon
