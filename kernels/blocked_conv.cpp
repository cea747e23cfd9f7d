#include "kernels/blocked_conv.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>

#include "schedule/composites/cost.h"
#include "schedule/composites/nests.h"

namespace tenon {
namespace {

/// Cycles to pack an element of W, lanes across its rows (measured).
constexpr double kPackCycles = 0.6;
/// Cycles to scatter a vector; how much slower than their multiply-adds tiles of pixels are where X
/// is read in steps, or moves with taps.
constexpr double kScatterCycles = 20, kSteppedPixels = 2.4, kWindowedPixels = 1.5;

/// The product of two loads that a sum adds up, X first: W is the one that moves with `lane` or,
/// where both do, has fewer of the spatial axes.
struct Factors {
  const Load *x = nullptr, *w = nullptr;
};

bool uses(const Load& l, const Var& v) {
  return std::any_of(l.indices.begin(), l.indices.end(),
                     [&](const Expr& e) { return uses_var(e, v); });
}

int spatial_uses(const Load& l, const Stage& s) {
  int count = 0;
  for (size_t n = 0; n < s.indices.size(); ++n) count += uses(l, s.axes[n].axis.var);
  return count;
}

std::optional<Factors> factors(const Stage& s, const Var& lane) {
  const Expr* value = &s.values[0];
  if (const Select* counted = value->as<Select>()) value = &counted->yes;
  const Binary* product = value->as<Binary>();
  if (!product || product->op != BinaryOp::mul || combiner_op(*s.combiner) != BinaryOp::add)
    return std::nullopt;
  const Load *a = without_casts(product->a).as<Load>(), *b = without_casts(product->b).as<Load>();
  if (!a || !b || a->buffer == b->buffer) return std::nullopt;
  const bool a_moves = uses(*a, lane), b_moves = uses(*b, lane);
  if (a_moves == b_moves ? spatial_uses(*a, s) < spatial_uses(*b, s) : a_moves) std::swap(a, b);
  const bool lanes_fit = !uses(*a, lane) || step_along(a->indices.back(), lane) == 1;
  if (!uses(*b, lane) || !lanes_fit) return std::nullopt;
  return Factors{a, b};
}

/// How many neighbours along one dimension a loop steps over, for an index that is a sum of such
/// loops.
struct Part {
  size_t loop;
  int64_t step;
};

/// A loop that goes round within its extent, as r in (r + 1) % s + s * j, counts as one that steps.
std::vector<Part> parts_of(const Expr& index, const std::vector<Var>& vars) {
  std::vector<Part> parts;
  for (size_t n = 0; n < vars.size(); ++n)
    if (uses_var(index, vars[n]))
      parts.push_back({n, std::max<int64_t>(1, step_along(index, vars[n]))});
  return parts;
}

/// W stored as [its part of the outer loops][that of the reduction loops, in order][lanes]; nothing
/// when an index is none of: a loop, or two loops as outer * lanes + inner.
std::optional<std::vector<LayoutDim>> layout_of(const Load& w, const std::vector<Var>& vars,
                                                size_t lane, const std::vector<LoopExtent>& loops) {
  std::vector<std::pair<size_t, LayoutDim>> dims;  // where it goes, what it is
  for (size_t d = 0; d < w.indices.size(); ++d) {
    const int dim = static_cast<int>(d);
    std::vector<Part> parts = parts_of(w.indices[d], vars);
    std::sort(parts.begin(), parts.end(), [](Part a, Part b) { return a.step > b.step; });
    if (parts.size() > 2 || (!parts.empty() && parts.back().step != 1)) return std::nullopt;
    const auto place = [&](const Part& p) { return p.loop == lane ? vars.size() : p.loop; };
    if (parts.empty()) {
      dims.push_back({0, {dim, 1, 0}});
    } else if (parts.size() == 1 && parts[0].loop != lane) {
      dims.push_back({place(parts[0]), {dim, 1, 0}});
    } else {
      const int64_t inner = loops[parts.back().loop].extent;
      if (parts.size() == 2 && parts[0].step != inner) return std::nullopt;
      dims.push_back({parts.size() == 2 ? place(parts[0]) : 0, {dim, inner, 0}});
      dims.push_back({place(parts.back()), {dim, 1, inner}});
    }
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LayoutDim> layout;
  for (const auto& [at, dim] : dims) layout.push_back(dim);
  return layout;
}

/// Does one dimension of W run along both, as block * lanes + lane?
bool in_blocks(const Load& w, const Var& block, const Var& lane) {
  return std::any_of(w.indices.begin(), w.indices.end(),
                     [&](const Expr& e) { return uses_var(e, block) && uses_var(e, lane); });
}

/// Gives the spatial axes before the lanes their parts; false when one has none.
bool assign_axes(BlockedConv& c, const Factors& f, const std::vector<Var>& vars,
                 const std::vector<LoopExtent>& loops, size_t spatial) {
  std::vector<size_t> pixels;
  for (size_t n = 0; n + 1 < spatial; ++n) {
    const bool in_x = uses(*f.x, vars[n]), in_w = uses(*f.w, vars[n]);
    const bool block = in_w && (!in_x || in_blocks(*f.w, vars[n], vars[spatial - 1]));
    if (block && c.blocks) return false;
    if (in_w && !block) c.paired.push_back(loops[n]);
    if (block)
      c.blocks = loops[n];
    else if (in_w)
      c.batch.push_back(loops[n]);
    else if (in_x && (loops[n].extent > 1 || n + 2 == spatial))
      pixels.push_back(n);
    else
      c.batch.push_back(loops[n]);
  }
  if (pixels.empty() || !c.blocks) return false;
  c.columns = loops[pixels.back()];
  if (pixels.size() > 1) c.rows = loops[pixels[pixels.size() - 2]];
  for (size_t n = 0; n + 2 < pixels.size(); ++n) c.batch.push_back(loops[pixels[n]]);
  if (!c.rows) return true;
  const Var& row = vars[pixels[pixels.size() - 2]];
  for (const Expr& index : f.x->indices)
    for (size_t k = spatial; k < vars.size(); ++k)
      if (uses_var(index, row) && uses_var(index, vars[k])) c.row_taps.push_back(loops[k].loop);
  return true;
}

std::optional<BlockedConv> read(const StagePath& path, const Target& target) {
  const Stage& s = *path.stage;
  if (!s.combiner || s.values.size() != 1 || !combiner_op(*s.combiner)) return std::nullopt;
  if (s.indices.size() < 2) return std::nullopt;
  BlockedConv c;
  c.stage = s.name;
  c.output = s.outputs[0]->name;
  c.dtype = s.outputs[0]->dtype;
  const size_t spatial = s.indices.size();
  const auto nest = constant_nest(path);
  if (!nest) return std::nullopt;
  const auto& [vars, loops] = *nest;
  c.lane = loops[spatial - 1];
  const int64_t lanes = target.lanes(c.dtype);
  if (c.lane.extent % lanes != 0 || c.lane.extent > 4 * lanes) return std::nullopt;
  const auto f = factors(s, vars[spatial - 1]);
  if (!f || !assign_axes(c, *f, vars, loops, spatial)) return std::nullopt;
  c.reduce.assign(loops.begin() + static_cast<std::ptrdiff_t>(spatial), loops.end());
  c.depthwise = uses(*f->x, vars[spatial - 1]);
  const auto layout = layout_of(*f->w, vars, spatial - 1, loops);
  if (!layout) return std::nullopt;
  c.w_layout = *layout;
  c.x_buffer = f->x->buffer->name;
  c.w_buffer = f->w->buffer->name;
  c.x_bytes = bytes_of(*f->x->buffer);
  c.w_bytes = bytes_of(*f->w->buffer);
  return c;
}

/// The product of two loads, W moving with one spatial axis alone, which X does not; the place of
/// that axis.
struct PlainFactors {
  const Load *x = nullptr, *w = nullptr;
  size_t channels = 0;
};

std::optional<PlainFactors> plain_factors(const Stage& s, const std::vector<Var>& vars) {
  const Binary* product = s.values[0].as<Binary>();
  if (!product || product->op != BinaryOp::mul || combiner_op(*s.combiner) != BinaryOp::add)
    return std::nullopt;
  const Load *a = product->a.as<Load>(), *b = product->b.as<Load>();
  if (!a || !b || a->buffer == b->buffer) return std::nullopt;
  for (const auto& [x, w] : {std::pair(a, b), std::pair(b, a)})
    for (size_t n = 0; n < s.indices.size(); ++n)
      if (spatial_uses(*w, s) == 1 && uses(*w, vars[n]) && !uses(*x, vars[n]))
        return PlainFactors{x, w, n};
  return std::nullopt;
}

/// W stored as [blocks of output channels][its part of the reduction loops, in order][lanes].
std::optional<std::vector<LayoutDim>> plain_layout(const Load& w, const std::vector<Var>& vars,
                                                   size_t spatial, const Var& channels,
                                                   int64_t lanes) {
  std::vector<std::pair<size_t, LayoutDim>> dims;
  int lane_dim = -1;
  for (size_t d = 0; d < w.indices.size(); ++d) {
    const int dim = static_cast<int>(d);
    const VarRef* ref = w.indices[d].as<VarRef>();
    if (!ref && !as_int(w.indices[d])) return std::nullopt;
    if (ref && ref->var.same_as(channels)) {
      lane_dim = dim;
      continue;
    }
    size_t at = 0;
    for (size_t k = spatial; ref && k < vars.size(); ++k)
      if (ref->var.same_as(vars[k])) at = k;
    dims.push_back({at, {dim, 1, 0}});
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LayoutDim> layout = {{lane_dim, lanes, 0}};
  for (const auto& [at, dim] : dims) layout.push_back(dim);
  layout.push_back({lane_dim, 1, lanes});
  return lane_dim < 0 ? std::nullopt : std::optional(layout);
}

std::optional<PlainConv> read_plain(const StagePath& path, const Target& target) {
  const Stage& s = *path.stage;
  if (!s.combiner || s.values.size() != 1 || !combiner_op(*s.combiner)) return std::nullopt;
  const auto nest = constant_nest(path);
  if (!nest) return std::nullopt;
  const auto& [vars, loops] = *nest;
  const auto f = plain_factors(s, vars);
  const size_t spatial = s.indices.size();
  if (!f || f->channels + 1 >= spatial) return std::nullopt;
  PlainConv plain;
  BlockedConv& c = plain.parts;
  c.stage = s.name;
  c.output = s.outputs[0]->name;
  c.dtype = s.outputs[0]->dtype;
  const int64_t lanes = target.lanes(c.dtype);
  const auto layout = plain_layout(*f->w, vars, spatial, vars[f->channels], lanes);
  if (!layout) return std::nullopt;
  c.channels = loops[f->channels].loop;
  plain.dimension = f->channels;
  c.lane = {c.channels, lanes};
  c.blocks = LoopExtent{c.channels, ceil_div(loops[f->channels].extent, lanes)};
  for (size_t n = 0; n < f->channels; ++n) c.batch.push_back(loops[n]);
  for (size_t n = f->channels + 1; n + 2 < spatial; ++n) c.batch.push_back(loops[n]);
  if (f->channels + 2 < spatial) c.rows = loops[spatial - 2];
  c.columns = loops[spatial - 1];
  c.reduce.assign(loops.begin() + static_cast<std::ptrdiff_t>(spatial), loops.end());
  c.w_layout = *layout;
  c.x_buffer = f->x->buffer->name;
  c.w_buffer = f->w->buffer->name;
  c.x_bytes = bytes_of(*f->x->buffer);
  c.w_bytes = bytes_of(*f->w->buffer);
  const Expr& along = f->x->indices.back();
  plain.result = bytes_of(*s.outputs[0]) / byte_size(c.dtype);
  plain.step = step_along(along, vars[spatial - 1]);
  for (size_t k = spatial; k < vars.size(); ++k)
    plain.windows = plain.windows || uses_var(along, vars[k]);
  return plain;
}

int64_t points_of(const BlockedConv& c) {
  int64_t points = 1;
  for (const LoopExtent& k : c.reduce) points *= k.extent;
  return points;
}

double iterations(const std::vector<LoopExtent>& loops) {
  double count = 1;
  for (const LoopExtent& l : loops) count *= static_cast<double>(l.extent);
  return count;
}

int64_t vectors_of(const BlockedConv& c, const Target& target) {
  return c.lane.extent / target.lanes(c.dtype);
}

/// X comes as the memory operand of the multiply-add: depthwise, and where one vector of W takes an
/// element for all lanes and AVX-512 spreads it.
bool folds_x(const BlockedConv& c, int64_t vectors, const Target& target) {
  return c.depthwise || (vectors == 1 && target.has_masks);
}

/// Cycles of one tile, per step of the sum.
double step_cycles(const BlockedConv& c, const ConvTile& t, const Target& target) {
  const int64_t pixels = t.rows * t.columns, vectors = t.blocks * vectors_of(c, target);
  const auto accumulators = static_cast<double>(pixels * vectors);
  const bool folded = folds_x(c, vectors, target);
  const double loads = folded ? accumulators + 1 : static_cast<double>(pixels + vectors);
  const double issued = folded ? accumulators + 1 : accumulators + loads;
  const auto points = static_cast<double>(points_of(c));
  const double w_bytes = static_cast<double>(vectors * target.vector_bits / 8);
  const bool far = points * w_bytes > static_cast<double>(target.l1d_bytes) / 2;
  const double ends = (accumulators * 2 + 30) / points;
  // Loads and lines that arrive are in each other's way long before they are the limit.
  const double friction = 0.1 * loads + 0.3 * static_cast<double>(vectors);
  const double stream = far ? w_bytes / memory_rates(target).near : 0;
  return std::max({accumulators / 2, loads / 2, issued / 5, stream, 4.0}) + friction + ends;
}

}  // namespace

std::optional<BlockedConv> find_blocked_conv(const Program& program, const std::string& name,
                                             const Target& target) {
  for (const StagePath& path : stage_paths(program.body))
    if (path.stage->name == name) return read(path, target);
  return std::nullopt;
}

std::optional<PlainConv> find_plain_conv(const Program& program, const std::string& name,
                                         const Target& target) {
  for (const StagePath& path : stage_paths(program.body))
    if (path.stage->name == name) return read_plain(path, target);
  return std::nullopt;
}

bool prefers_channels(const PlainConv& c, const Contraction& product, const Target& target,
                      bool ahead) {
  const auto lanes = static_cast<double>(target.lanes(c.parts.dtype));
  const auto w = static_cast<double>(c.parts.w_bytes / byte_size(c.parts.dtype));
  const double channels =
      iterations(c.parts.batch) * conv_cycles(c.parts, best_conv_tile(c.parts, target), target) +
      static_cast<double>(c.result) / lanes * kScatterCycles + (ahead ? 0 : w * kPackCycles);
  const double slower = c.step > 1 ? kSteppedPixels : c.windows ? kWindowedPixels : 1;
  const double pixels = iterations(product.batch) * iterations(product.outer) *
                        static_cast<double>(points_of(c.parts)) *
                        tile_cycles(product, best_tile(product, target), target);
  return channels < pixels * slower;
}

int64_t registers_used(const BlockedConv& c, const ConvTile& t, const Target& target) {
  const int64_t vectors = t.blocks * vectors_of(c, target), pixels = t.rows * t.columns;
  // Half for the sums, half for the taps of W and for X, which neighbouring taps share.
  if (c.depthwise) return 2 * pixels * vectors - 1;
  return pixels * vectors + vectors + (folds_x(c, vectors, target) ? 0 : 1);
}

int64_t conv_registers_free(const Target& target) { return target.vector_registers - 1; }

double conv_cycles(const BlockedConv& c, const ConvTile& tile, const Target& target) {
  double total = 0;
  each_tile(extent_of(c.rows), tile.rows, [&](double row_tiles, int64_t rows) {
    each_tile(extent_of(c.columns), tile.columns, [&](double column_tiles, int64_t columns) {
      each_tile(extent_of(c.blocks), tile.blocks, [&](double block_tiles, int64_t blocks) {
        total += row_tiles * column_tiles * block_tiles *
                 step_cycles(c, {rows, columns, blocks}, target);
      });
    });
  });
  return total * static_cast<double>(points_of(c));
}

ConvTile best_conv_tile(const BlockedConv& c, const Target& target) {
  const int64_t most_blocks = c.depthwise ? 1 : std::min<int64_t>(extent_of(c.blocks), 8);
  const int64_t free = conv_registers_free(target);
  ConvTile best;
  double least = conv_cycles(c, best, target);
  for (int64_t blocks = 1; blocks <= most_blocks; ++blocks)
    for (int64_t rows = 1; rows <= std::min(extent_of(c.rows), free); ++rows)
      for (int64_t columns = 1; columns <= extent_of(c.columns); ++columns) {
        const ConvTile tile{rows, columns, blocks};
        if (registers_used(c, tile, target) > free) break;
        const double cycles = conv_cycles(c, tile, target);
        if (cycles < least * 0.999) {
          least = cycles;
          best = tile;
        }
      }
  return best;
}

int64_t span_tiles(const BlockedConv& c, const ConvTile& tile) {
  return c.rows ? ceil_div(c.rows->extent, tile.rows)
                : ceil_div(extent_of(c.columns), tile.columns);
}

int64_t best_span(const BlockedConv& c, const ConvTile& tile, const Target& target) {
  const int64_t all = span_tiles(c, tile), half = target.l2_bytes / 2;
  if (c.depthwise) return all;
  if (c.w_bytes <= half && balance(all, target.cores) > 0.9) return 1;
  if (c.x_bytes <= half) return all;
  // Even parts, so that they are shared out evenly as well.
  const int64_t parts = ceil_div(c.x_bytes, half), cores = target.cores;
  return std::max<int64_t>(1, all / (ceil_div(parts, cores) * cores));
}

}  // namespace tenon
