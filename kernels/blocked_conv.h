#pragma once
#include <tenon/ir/program.h>
#include <tenon/schedule/primitive.h>
#include <tenon/target/target.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/contraction.h"

namespace tenon {

/// A convolution (or matrix product) on activations in blocks of channels, and the part that each
/// loop plays: lanes are output channels, X is the same for all lanes, or (depthwise) has the lanes
/// itself.
struct BlockedConv {
  std::string stage, output, x_buffer, w_buffer;
  DType dtype = DType::f32;
  LoopExtent lane;
  std::optional<LoopExtent> blocks;         // of output channels
  std::string channels;                     // plain layout: the loop that blocks and lanes are
  std::vector<LoopExtent> batch;            // axes of X before rows; of W too: those in `paired`
  std::vector<LoopExtent> paired;           // a product of its own for each point of these
  std::optional<LoopExtent> rows, columns;  // the last two axes of X
  std::vector<LoopExtent> reduce;           // as written
  std::vector<std::string> row_taps;        // those of `reduce` that move X as rows do
  bool depthwise = false;
  std::vector<LayoutDim> w_layout;  // W in the order that the sum reads it
  int64_t x_bytes = 0, w_bytes = 0;
};

/// Nothing when the reduction stage `name` is no sum of X * W of plain elements of two buffers,
/// where W[oc.., channels and taps..] moves with the last axis, in whole vectors.
std::optional<BlockedConv> find_blocked_conv(const Program& program, const std::string& name,
                                             const Target& target);

/// A convolution in plain layout, Y[n, oc, pixels..] = sum of X * W[oc, channels and taps..], whose
/// output channels can be cut into blocks of lanes. Nothing for groups, for a W that is no plain
/// element, or where the result has no pixels beside the channels.
struct PlainConv {
  BlockedConv parts;
  size_t dimension = 0;  // of the result: its channels
  int64_t result = 0;    // elements of it
  int64_t step = 1;      // of X along the last axis
  bool windows = false;  // X moves along it with taps too
};
std::optional<PlainConv> find_plain_conv(const Program& program, const std::string& name,
                                         const Target& target);

/// Whether channels in the lanes are estimated to be faster than pixels, `product` the same stage:
/// each vector of the result is scattered, but X comes by single elements, wherever it lies, where
/// vectors of pixels cross lines (taps) or are put together from several (steps). W is packed,
/// `ahead` or in each call.
bool prefers_channels(const PlainConv& c, const Contraction& product, const Target& target,
                      bool ahead);

/// Accumulators in registers: rows x columns pixels by blocks of channels.
struct ConvTile {
  int64_t rows = 1, columns = 1, blocks = 1;
  bool operator==(const ConvTile&) const = default;
};

/// Vector registers that the tile's inner loop keeps busy, and those that may be.
int64_t registers_used(const BlockedConv& c, const ConvTile& tile, const Target& target);
int64_t conv_registers_free(const Target& target);

/// Estimated cycles of the convolution: per step of the sum a tile takes the longest of its
/// multiply-adds and its loads (two a cycle each), its instructions (five a cycle), W from the
/// second cache and the latency of an accumulator (four), and a little for each
/// load; tiles at the ends count as the smaller ones they are.
double conv_cycles(const BlockedConv& c, const ConvTile& tile, const Target& target);
/// The tile of least estimated cycles that fits the registers.
ConvTile best_conv_tile(const BlockedConv& c, const Target& target);

/// Row tiles (column tiles, where there are no rows) of the image.
int64_t span_tiles(const BlockedConv& c, const ConvTile& tile);

/// How many row tiles (column tiles, where there are no rows) run over one group of channel blocks
/// before the next: 1 where all of W stays in the second cache, so that X is read once; else as
/// many as keep their part of X there, so that W is read as seldom as can be.
int64_t best_span(const BlockedConv& c, const ConvTile& tile, const Target& target);

}  // namespace tenon
