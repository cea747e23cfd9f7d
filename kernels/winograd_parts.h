#pragma once
#include "kernels/blocked_conv.h"

namespace tenon {

/// The stages of Winograd's convolution (winograd.h):
///   rows (B' d along rows) -> input (along columns) -> products -> pixels (A' along rows) ->
///   result
struct WinogradParts {
  std::string rows, input, pixels, result;  // stages
  std::string result_buffer;
  BlockedConv products;
  int64_t m = 0;  // pixels of a tile's side
};

/// Nothing when the program's largest reduction is no blocked convolution between such maps.
std::optional<WinogradParts> find_winograd(const Program& program, const Target& target);

/// How it is cut, from the outside in:
///   blocks of rows x columns tiles        -> transformed input of a block stays in the second
///   cache
///     groups of tile.blocks channel blocks -> and so do the products of a group
///       (m + 2)^2 products in register tiles, then the group's pixels
struct WinogradBlocking {
  int64_t rows = 1, columns = 1;
  ConvTile tile;
  int64_t group = 1;          // channel blocks whose products are kept before their pixels
  int64_t k_blocks = 0;       // blocks of input channels before the next tile; 0: all
  int64_t unroll = 1;         // steps of the sum in one piece
  bool shared_input = false;  // all of the input is transformed first, groups run in parallel
};

/// Register tiles fill the blocks and the groups, but where a block is all of the image, a group
/// all channels: there a rest may be left.
bool tiles_fit(const WinogradBlocking& b, const WinogradParts& w);

/// The blocking of least estimated cycles.
WinogradBlocking best_winograd_blocking(const WinogradParts& w, const Target& target);

}  // namespace tenon
