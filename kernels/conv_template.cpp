#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "kernels/blocked_conv.h"
#include "kernels/dot_product.h"
#include "kernels/templates.h"
#include "schedule/composites/copies.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"
#include "schedule/composites/register_sum.h"

namespace tenon {
namespace {

/// More multiply-adds than this in one straight piece of code gain nothing and cost the compiler;
/// tiles of several rows are cut along rows and taps, so that there are more such pieces.
constexpr int64_t kMostUnrolled = 512, kMostUnrolledRows = 128;

struct ConvChoice {
  ConvTile tile;
  int64_t span = 1;                // row tiles between two groups of channel blocks
  int64_t unroll = 1;              // steps of the innermost reduction loops in one piece
  int64_t ahead = 0;               // X is prefetched so many blocks of input channels ahead
  std::optional<Loop> terms = {};  // what one instruction adds up in a lane
  bool ahead_of_calls = false;     // W is packed before the first call
  bool in_blocks = false;          // else: block by block, each just before it is used
};

/// The steps of the innermost reduction loops that are written out: whole loops (depthwise: all
/// taps) while the code stays small. A step has `terms` products for each sum.
int64_t best_unroll(const BlockedConv& c, const ConvTile& tile, int64_t terms) {
  const int64_t each = tile.rows * tile.columns * tile.blocks * terms;
  const bool cut = tile.rows > 1 && !c.row_taps.empty() && !c.depthwise;
  const int64_t most = (cut ? kMostUnrolledRows : kMostUnrolled) / each;
  int64_t steps = 1;
  for (size_t n = c.reduce.size(); n-- > 0;) {
    if (steps * c.reduce[n].extent > most) break;
    steps *= c.reduce[n].extent;
  }
  if (steps > 1 || c.depthwise) return steps;
  while (steps * 2 <= most) steps *= 2;
  return steps;
}

ConvChoice choose(const BlockedConv& c, int64_t terms, const Target& target, Knobs& knobs) {
  const ConvTile best = best_conv_tile(c, target);
  const int64_t free = conv_registers_free(target);
  ConvChoice choice;
  choice.tile.rows = knobs.pick(
      "rows", ladder(std::min(extent_of(c.rows), free), {1, 2, 3, 4, 7}, best.rows), best.rows);
  choice.tile.columns =
      knobs.pick("columns",
                 ladder(std::min(extent_of(c.columns), free),
                        {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 20, 24, 28}, best.columns),
                 best.columns);
  choice.tile.blocks = knobs.pick(
      "blocks", ladder(c.depthwise ? 1 : extent_of(c.blocks), {1, 2, 3, 4, 6}, best.blocks),
      best.blocks);
  const int64_t all = span_tiles(c, best), span = best_span(c, best, target);
  choice.span = knobs.pick("span", ladder(all, {1, 2, 4, 8, 16, 32, 64, all}, span), span);
  const int64_t unroll = best_unroll(c, best, terms);
  choice.unroll = knobs.pick("unroll", ladder(unroll, {1, 2, 4, 8, 16}, unroll), unroll);
  // Of pixels in one row, what the second cache cannot hold comes in pieces too short for its own
  // prefetcher.
  const bool far = !c.rows && !c.depthwise && c.x_bytes > target.l2_bytes / 2;
  choice.ahead = knobs.pick("ahead", {0, 1, 2, 3}, far ? 1 : 0);
  knobs.require(
      [c, target, free](const Point& p) {
        const ConvTile tile{p.number("rows"), p.number("columns"), p.number("blocks")};
        return registers_used(c, tile, target) <= free;
      },
      "the tile needs more vector registers than the target has");
  return choice;
}

/// Where W is packed in each call: a block stays in the second cache until all images have used it,
/// where nothing else stands outside of the blocks and they keep the cores busy.
void choose_packing(const BlockedConv& c, const Schedule& s, Knobs& knobs, ConvChoice& choice) {
  choice.ahead_of_calls = is_constant(s.program(), c.w_buffer);
  if (choice.ahead_of_calls || !c.paired.empty() || c.depthwise || choice.terms) return;
  const ConvTile best = best_conv_tile(c, s.target());
  const int64_t blocks = ceil_div(extent_of(c.blocks), best.blocks);
  const bool outside = best_span(c, best, s.target()) >= span_tiles(c, best);
  choice.in_blocks = knobs.flag("pack_blocks", outside && balance(blocks, s.target().cores) > 0.9);
}

/// The loops of the anchor after tiling.
struct ConvLoops {
  std::vector<Loop> outer;  // from the outside in; the last is the tile's
  Loop blocks;              // of them: over blocks of channels
  std::vector<Loop> unrolled;
  std::optional<Loop> rows;  // over row tiles, the innermost of them
  Loop lane;
};

/// Adds the reduction loops to `order`, the last `steps` steps of them as loops to unroll.
void place_reduction(StageSteps& anchor, const BlockedConv& c, int64_t steps,
                     std::vector<LoopRef>& order, ConvLoops& t) {
  std::vector<Loop> written;
  size_t n = c.reduce.size();
  while (n > 0 && steps > 1 && steps % c.reduce[n - 1].extent == 0) {
    steps /= c.reduce[--n].extent;
    written.insert(written.begin(), {c.stage, c.reduce[n].loop});
  }
  for (size_t k = 0; k < n; ++k) {
    if (k + 1 < n || steps <= 1) {
      order.push_back(Loop{c.stage, c.reduce[k].loop});
      continue;
    }
    const auto [o, i] = anchor.split(c.reduce[k].loop, steps);
    order.push_back(o);
    written.insert(written.begin(), i);
  }
  order.insert(order.end(), written.begin(), written.end());
  t.unrolled = written;
}

/// n ob oh ow o | k..   ->   n [oh.o.o] ob.o oh.o.i ow.o | k.. oh.i ow.i ob.i o, or ob.o n where
/// blocks are packed
ConvLoops tile_loops(Schedule& s, const BlockedConv& c, const ConvChoice& choice) {
  StageSteps anchor = s[c.stage];
  ConvLoops t;
  for (const LoopExtent& l : c.batch) t.outer.push_back({c.stage, l.loop});
  const size_t batch = t.outer.size();
  SplitLoops blocks;
  t.lane = {c.stage, c.lane.loop};
  if (c.channels.empty()) {
    blocks = anchor.split(c.blocks->loop, choice.tile.blocks);
  } else {  // the tile's channels at once: one condition says where they end
    blocks = anchor.split(c.channels, choice.tile.blocks * c.lane.extent);
    const SplitLoops lanes = anchor.split(blocks.inner, c.lane.extent);
    blocks.inner = lanes.outer;
    t.lane = lanes.inner;
  }
  const auto [wo, wi] = anchor.split(c.columns->loop, choice.tile.columns);
  std::vector<Loop> inner = {wi, blocks.inner}, pixels = {wo};
  if (c.rows) {
    const auto [ho, hi] = anchor.split(c.rows->loop, choice.tile.rows);
    inner.insert(inner.begin(), hi);
    pixels.insert(pixels.begin(), ho);
  }
  t.blocks = blocks.outer;
  const int64_t all = span_tiles(c, choice.tile);
  if (choice.span >= all) {
    t.outer.insert(t.outer.begin() + static_cast<std::ptrdiff_t>(choice.in_blocks ? 0 : batch),
                   blocks.outer);
    t.outer.insert(t.outer.end(), pixels.begin(), pixels.end());
  } else if (choice.span == 1) {
    t.outer.push_back(pixels[0]);
    t.outer.push_back(blocks.outer);
    t.outer.insert(t.outer.end(), pixels.begin() + 1, pixels.end());
  } else {
    const auto [po, pi] = anchor.split(pixels[0], choice.span);
    t.outer.insert(t.outer.end(), {po, blocks.outer, pi});
    t.outer.insert(t.outer.end(), pixels.begin() + 1, pixels.end());
    pixels[0] = pi;
  }
  if (c.rows) t.rows = pixels[0];
  std::vector<LoopRef> order(t.outer.begin(), t.outer.end());
  place_reduction(anchor, c, choice.unroll, order, t);
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(t.lane);
  if (choice.terms) order.push_back(*choice.terms);
  anchor.reorder(order);
  t.unrolled.insert(t.unrolled.end(), inner.begin(), inner.end());
  return t;
}

/// Packs all of W. Returns the stage that does so in each call; empty where there is none.
std::string pack_all(Schedule& s, const BlockedConv& c, const ConvChoice& choice) {
  if (choice.in_blocks) return "";
  return s.pack(c.w_buffer, c.w_layout,
                {choice.ahead_of_calls ? PackWhen::ahead : PackWhen::run_time});
}

/// The loops that threads share: outside of what they pack.
std::vector<Loop> loops_to_share(const ConvLoops& t, const ConvChoice& choice) {
  if (!choice.in_blocks) return t.outer;
  return {t.outer.begin(), std::find(t.outer.begin(), t.outer.end(), t.blocks) + 1};
}

/// Packs block by block, or `packed` has all; lanes that lie across the rows of W are transposed.
void finish_packing(Schedule& s, const BlockedConv& c, const ConvLoops& t, const ConvChoice& choice,
                    std::string packed, std::vector<std::string>& done) {
  if (choice.in_blocks)
    packed = s[c.stage].cache_read(c.w_buffer, t.blocks, {.layout = c.w_layout});
  if (packed.empty() || choice.terms) return;
  const std::vector<Loop> loops =
      choice.in_blocks ? loops_below(s, packed, t.blocks) : s[packed].loops();
  const LayoutDim& lanes = c.w_layout.back();
  const auto dim = static_cast<size_t>(lanes.dim);
  if (dim + 1 < loops.size()) {
    const std::vector<Loop> outer = transpose_copy(s, packed, loops, dim, lanes.modulo);
    if (!choice.in_blocks) fuse_and_parallel(s, packed, outer);
  } else if (choice.in_blocks) {
    finish_map_in_loop(s, packed, t.blocks);
  } else {
    return;
  }
  done.push_back(packed);
}

/// Rows outside of the image: a branch for each row of the kernel instead of three copies of the
/// code.
void branch_on_rows(Schedule& s, const BlockedConv& c, const ConvLoops& t) {
  if (!t.rows || c.depthwise) return;
  const std::vector<Loop> loops = s[c.stage].loops();
  if (std::find(loops.begin(), loops.end(), *t.rows) == loops.end()) return;  // fused
  s[c.stage].annotate(*t.rows, "no_partition", 1);
  for (const std::string& tap : c.row_taps)
    if (std::find(loops.begin(), loops.end(), Loop{c.stage, tap}) != loops.end())
      s[c.stage].annotate(Loop{c.stage, tap}, "no_partition", 1);
}

/// Whether the lanes of the stage, its last loop, are neighbours in what it writes.
bool writes_along_lanes(const Schedule& s, const std::string& stage) {
  for (const StagePath& path : stage_paths(s.program().body)) {
    if (path.stage->name != stage) continue;
    for (const AxisBinding& b : path.stage->axes)
      if (uses_var(b.value, path.loops.back()->var))
        return step_along(path.stage->indices.back(), b.axis.var) == 1;
  }
  return false;
}

/// What only puts the sum's elements elsewhere, maps after that included, happens where the sum's
/// copy is written: no second pass.
///   Y.kinds(r, q) = sum   Y(w) = Y.kinds(w % s, w // s)   ->   Y(q * s + r) = sum
void write_in_place(Schedule& s, const std::string& copy) {
  for (const std::string& stage : roles(s.program()).epilogue) {
    Schedule folded = s;
    if (stage == copy || folded.try_apply(ReverseComputeInline{stage})) continue;
    if (writes_along_lanes(folded, copy)) s = folded;
  }
}

/// The last block may have lanes of no channel: the others run without their mask.
void cut_last_block(Schedule& s, const BlockedConv& c) {
  for (const Loop& l : s[c.stage].loops())
    if (l.name.find(c.blocks->loop + ".o") != std::string::npos)
      s.try_apply(Partition{c.stage, l.name});
}

void blocked_template(Schedule& s, Knobs& knobs, bool in_dots) {
  const std::string anchor = roles(s.program()).anchor;
  const auto found = find_blocked_conv(s.program(), anchor, s.target());
  TENON_CHECK(found, "conv_template on a program without a convolution in blocks of channels");
  BlockedConv c = *found;
  std::optional<Loop> terms;
  std::optional<IntrinsicRef> dots;
  int64_t group = 1;
  if (in_dots) {
    dots = find_conv_dots(s.program(), c, s.target(), DotUnit::lanes);
    TENON_CHECK(dots, "conv_dot_template on a convolution that no instruction adds up");
    group = parts_of(**dots).group;
    c.w_layout = grouped_weights(c, group, c.lane.extent);
    LoopExtent& channels = c.reduce.back();
    const auto [groups, term] = s[anchor].split(channels.loop, group);
    channels = {groups.name, channels.extent / group};
    terms = term;
  }
  ConvChoice choice = choose(c, group, s.target(), knobs);
  choice.terms = terms;
  choose_packing(c, s, knobs, choice);
  std::string packed = pack_all(s, c, choice);
  const ConvLoops t = tile_loops(s, c, choice);

  std::vector<std::string> done = {anchor};
  const size_t in_tile = place_sum(s, anchor, c.output, t.outer.back(), done);
  if (done.size() > 1) write_in_place(s, done[1]);
  finish_packing(s, c, t, choice, packed, done);
  for (const Loop& l : t.unrolled) s[anchor].unroll(l);
  if (dots)
    s[anchor].tensorize(t.lane, *dots);
  else
    s[anchor].vectorize(t.lane);
  for (size_t n = 1; n < in_tile; ++n) finish_map_in_tile(s, done[n], t.outer.back());
  if (choice.ahead > 0 && !c.reduce.empty())
    s.try_apply(Prefetch{anchor, c.x_buffer, c.reduce[0].loop, choice.ahead});
  fuse_and_parallel(s, anchor, loops_to_share(t, choice));
  if (choice.tile.rows == 1) branch_on_rows(s, c, t);
  cut_last_block(s, c);
  schedule_rest(s, done);
}

}  // namespace

void conv_template(Schedule& s, Knobs& knobs) { blocked_template(s, knobs, false); }
void conv_dot_template(Schedule& s, Knobs& knobs) { blocked_template(s, knobs, true); }

void plain_conv_template(Schedule& s, Knobs& knobs) {
  const std::string anchor = roles(s.program()).anchor;
  const auto plain = find_plain_conv(s.program(), anchor, s.target());
  TENON_CHECK(plain, "plain_conv_template on a program without a convolution in plain layout");
  const BlockedConv& c = plain->parts;
  ConvChoice choice = choose(c, 1, s.target(), knobs);
  choose_packing(c, s, knobs, choice);
  const std::string packed = pack_all(s, c, choice);
  const ConvLoops t = tile_loops(s, c, choice);
  const Loop tile = t.outer.back();
  std::vector<std::string> done = {anchor, s[anchor].cache_write(tile, {Scope::reg}).store};
  for (const Loop& l : t.unrolled) s[anchor].unroll(l);
  s[anchor].vectorize(t.lane, {Tail::mask});
  for (const std::string& stage : roles(s.program()).epilogue)
    if (stage != done[1]) s.try_apply(ReverseComputeInline{stage});
  finish_map_across(s, done[1], tile, plain->dimension, c.lane.extent);
  finish_packing(s, c, t, choice, packed, done);
  fuse_and_parallel(s, anchor, loops_to_share(t, choice));
  schedule_rest(s, done);
}

}  // namespace tenon
