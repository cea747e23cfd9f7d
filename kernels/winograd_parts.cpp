#include "kernels/winograd_parts.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/schedule/roles.h>

#include <algorithm>

#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"

namespace tenon {
namespace {

/// More multiply-adds than this in one straight piece of code gain nothing.
constexpr int64_t kMostUnrolled = 512;

/// The stage that writes the buffer; null for a parameter.
const Stage* writer_of(const std::vector<StagePath>& paths, const std::string& buffer) {
  for (const StagePath& p : paths)
    for (const Buffer& b : p.stage->outputs)
      if (b->name == buffer) return p.stage;
  return nullptr;
}

/// The only buffer that the map reads; empty when there are several or it is no map.
std::string only_source(const Stage& s) {
  std::string found;
  bool one = !s.combiner;
  for (const Expr& value : s.values)
    walk(value, [&](const Expr& e) {
      if (auto* l = e.as<Load>()) {
        one = one && (found.empty() || found == l->buffer->name);
        found = l->buffer->name;
      }
      return true;
    });
  return one ? found : "";
}

/// The only stage that reads the buffer.
const Stage* reader_of(const std::vector<StagePath>& paths, const std::string& buffer) {
  const Stage* found = nullptr;
  for (const StagePath& p : paths) {
    bool reads = false;
    for (const Expr& value : p.stage->values)
      walk(value, [&](const Expr& e) {
        if (auto* l = e.as<Load>()) reads = reads || l->buffer->name == buffer;
        return true;
      });
    if (reads && found) return nullptr;
    if (reads) found = p.stage;
  }
  return found;
}

int64_t axis_extent(const Stage& s, size_t n) { return as_int(s.axes[n].axis.extent).value_or(0); }

/// The sizes that cut an extent into 1, 2, .. nearly equal parts, smallest first.
std::vector<int64_t> even_parts(int64_t extent) {
  std::vector<int64_t> sizes;
  for (int64_t parts = extent; parts >= 1; --parts) {
    const int64_t size = ceil_div(extent, parts);
    if (sizes.empty() || sizes.back() != size) sizes.push_back(size);
  }
  return sizes;
}

/// The products of one block of tiles.
BlockedConv block_of(BlockedConv c, int64_t rows, int64_t columns) {
  if (c.rows) c.rows->extent = rows;
  c.columns->extent = columns;
  return c;
}

int64_t points_of(const BlockedConv& c) { return c.paired[0].extent * c.paired[1].extent; }

int64_t in_channels(const BlockedConv& c) {
  int64_t channels = 1;
  for (const LoopExtent& k : c.reduce) channels *= k.extent;
  return channels;
}

int64_t block_count(const WinogradBlocking& b, const BlockedConv& c) {
  int64_t count = ceil_div(extent_of(c.rows), b.rows) * ceil_div(c.columns->extent, b.columns);
  for (const LoopExtent& l : c.batch) count *= l.extent;
  return count / points_of(c);
}

/// Where blocks of tiles are too few for the cores, groups of channels are shared out instead. The
/// weights of a register tile stay in the first cache while other tiles of the block use them.
void share_out(WinogradBlocking& b, const WinogradParts& w, const Target& target) {
  const BlockedConv& c = w.products;
  const int64_t step = c.lane.extent * byte_size(c.dtype), all = c.blocks->extent;
  b.unroll = std::max<int64_t>(
      1, std::min<int64_t>(
             c.lane.extent,
             kMostUnrolled / std::max<int64_t>(1, b.tile.rows * b.tile.columns * b.tile.blocks)));
  b.group = all;
  b.shared_input = balance(block_count(b, c), target.cores) < 0.8;
  if (b.shared_input) {
    const int64_t pieces = ceil_div(target.cores, block_count(b, c));
    b.group = ceil_div(all, pieces);
    while (b.group % b.tile.blocks != 0) --b.tile.blocks;
  }
  const int64_t panel = in_channels(c) * b.tile.blocks * step;
  if (panel > target.l1d_bytes / 2 && b.tile.rows * b.tile.columns < b.rows * b.columns)
    b.k_blocks =
        std::max<int64_t>(1, target.l1d_bytes / 4 / (b.tile.blocks * step) / c.lane.extent);
}

int64_t weight_bytes(const BlockedConv& c) {
  return points_of(c) * in_channels(c) * c.blocks->extent * c.lane.extent * byte_size(c.dtype);
}

/// What the second cache is to keep: the transformed input and the products of a block, and the
/// weights where they are few.
int64_t kept_bytes(const WinogradBlocking& b, const WinogradParts& w, const Target& target) {
  const BlockedConv& c = w.products;
  const int64_t pixels = points_of(c) * b.rows * b.columns * byte_size(c.dtype),
                weights = weight_bytes(c);
  return pixels * (in_channels(c) + b.group * c.lane.extent) +
         (weights <= target.l2_bytes / 2 ? weights : 0);
}

/// Of all blocks on the busiest core. Weights from far come half while the products are computed.
double block_cycles(const WinogradBlocking& b, const WinogradParts& w, const Target& target) {
  const BlockedConv& c = w.products;
  const auto blocks = static_cast<double>(block_count(b, c));
  const double products = conv_cycles(block_of(c, b.rows, b.columns), b.tile, target) *
                          static_cast<double>(points_of(c)),
               bytes = static_cast<double>(weight_bytes(c)),
               far =
                   weight_bytes(c) > target.l2_bytes / 2 ? bytes / memory_rates(target).far / 2 : 0;
  const double shared = b.shared_input ? 1 : balance(block_count(b, c), target.cores);
  return blocks * (products + far) / shared;
}

}  // namespace

std::optional<WinogradParts> find_winograd(const Program& program, const Target& target) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  const auto c = find_blocked_conv(program, roles(program).anchor, target);
  if (!c || c->paired.size() != 2 || c->paired[0].extent != c->paired[1].extent)
    return std::nullopt;
  const Stage* input = writer_of(paths, c->x_buffer);
  const Stage* rows = input ? writer_of(paths, only_source(*input)) : nullptr;
  const Stage* pixels = reader_of(paths, c->output);
  const Stage* result = pixels && !pixels->combiner && pixels->axes.size() == 7
                            ? reader_of(paths, pixels->outputs[0]->name)
                            : nullptr;
  if (!rows || rows->combiner || only_source(*rows).empty() || !result || result->combiner ||
      result->axes.size() < 4)
    return std::nullopt;
  WinogradParts w;
  w.rows = rows->name;
  w.input = input->name;
  w.products = *c;
  w.pixels = pixels->name;
  w.result = result->name;
  w.result_buffer = result->outputs[0]->name;
  w.m = axis_extent(*pixels, 4);
  if (w.m + 2 != c->paired[0].extent) return std::nullopt;
  return w;
}

bool tiles_fit(const WinogradBlocking& b, const WinogradParts& w) {
  const auto fit = [](int64_t extent, int64_t block, int64_t tile) {
    return tile <= block && (block % tile == 0 || block == extent);
  };
  return fit(extent_of(w.products.rows), b.rows, b.tile.rows) &&
         fit(w.products.columns->extent, b.columns, b.tile.columns) &&
         fit(w.products.blocks->extent, b.group, b.tile.blocks);
}

WinogradBlocking best_winograd_blocking(const WinogradParts& w, const Target& target) {
  WinogradBlocking best;
  double least = 0;
  const BlockedConv& c = w.products;
  // Whole rows of tiles first: pixels of one row are neighbours in memory.
  const std::vector<int64_t> widths = even_parts(c.columns->extent);
  for (size_t n = widths.size(); n-- > 0;)
    for (int64_t rows : even_parts(extent_of(c.rows))) {
      WinogradBlocking b;
      b.rows = rows;
      b.columns = widths[n];
      b.tile = best_conv_tile(block_of(c, rows, widths[n]), target);
      share_out(b, w, target);
      if (!tiles_fit(b, w)) continue;
      const double cycles = block_cycles(b, w, target);
      const bool first = least == 0, fits = kept_bytes(b, w, target) <= target.l2_bytes / 4 * 3;
      if (!first && (!fits || cycles >= least * 0.999)) continue;
      best = b;
      least = cycles;
    }
  return best;
}

}  // namespace tenon
