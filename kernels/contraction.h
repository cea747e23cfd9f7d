#pragma once
#include <tenon/ir/program.h>
#include <tenon/ir/visit.h>
#include <tenon/target/target.h>

#include <optional>
#include <string>
#include <vector>

#include "schedule/composites/unscheduled.h"

namespace tenon {

/// How X is read where each result has a channel of its own (a depthwise convolution): along the
/// dimension that `extra` moves, a reduction moves as well, so that neighbouring rows share rows of
/// X.
struct Windows {
  size_t taps = 0;                 // of Contraction::reduce, that reduction
  int64_t step = 1, dilation = 1;  // of `extra`, of a tap
  int64_t vector_step = 1;         // of the vector axis, in elements
};

/// A reduction whose last spatial axis can become vectors, and the part that each loop plays.
/// Matrix products and convolutions are sums of products X * W, X being the factor that moves with
/// the last axis; pools and reductions over other than the last dimension have X alone.
struct Contraction {
  std::string stage, output;
  DType dtype = DType::f32;         // of the sum
  LoopExtent vector;                // the last spatial axis
  std::optional<LoopExtent> rows;   // an axis of W along which X is reused
  int64_t rows_group = 0;           // rows that share X are aligned groups of so many; 0: all do
  std::optional<LoopExtent> extra;  // the axis of X before `vector`; W is reused along it
  std::vector<LoopExtent> batch;    // axes of both factors, in order
  std::vector<LoopExtent> outer;    // the other axes of X
  std::vector<LoopExtent> reduce;   // as written
  std::string x_buffer;             // X when it is a plain element of a buffer, else empty
  std::vector<int> x_order;         // order of its dimensions with the vector axis last
  bool x_contiguous = false;        // along `vector` X reads neighbours, or every second element
  std::optional<Windows> windows;   // a product without rows
  bool in_panels = false;           // X must be copied: its elements are groups of others
  double step_cost = 1;             // multiply-adds that take as long as what one step does

  /// X has no W to be multiplied with.
  bool alone() const { return !rows && batch.empty(); }
};

/// The part each loop of reduction stage `name` plays, or nothing when it has no spatial axis, an
/// empty or symbolic extent, a tuple of values, or a last axis that moves both factors.
std::optional<Contraction> find_contraction(const Program& program, const std::string& name);

/// A register tile: rows x extra x vectors accumulators.
struct RegisterTile {
  int64_t rows = 1, extra = 1, vectors = 1;
  bool operator==(const RegisterTile&) const = default;
};

/// Iterations of the loops together.
int64_t points_in(const std::vector<LoopExtent>& loops);

/// Vector registers that the tile's inner loop keeps busy: accumulators, the vectors of X and one
/// element of W.
int64_t registers_used(const RegisterTile& tile);

/// Estimated cycles of the whole contraction, divided by its reduction points: per step a tile
/// takes the longest of its multiply-adds (two a cycle), its loads (two a cycle), what comes from
/// the second cache and the latency of an accumulator (four), and a little for each load; tails
/// count as the smaller tiles they are.
double tile_cycles(const Contraction& c, const RegisterTile& tile, const Target& target);

/// The tile of least estimated cycles that fits the registers.
RegisterTile best_tile(const Contraction& c, const Target& target);

}  // namespace tenon
