#include "kernels/conv.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "kernels/axes.h"
#include "kernels/pad.h"

namespace tenon {
namespace {

using Numbers = std::vector<int64_t>;

/// The options of one convolution, every list filled in and checked.
struct Geometry {
  int spatial = 0;
  Numbers strides, dilations, pads_begin, pads_end, kernel;
  int64_t groups = 1;
};

Numbers filled(const std::string& name, std::string_view what, const Numbers& given, size_t count,
               int64_t fallback, int64_t lowest) {
  if (given.empty()) return Numbers(count, fallback);
  if (given.size() != count)
    throw UserError(fmt::format("{}: {} has {} numbers; there are {} spatial dimensions", name,
                                what, given.size(), count));
  for (int64_t value : given)
    if (value < lowest)
      throw UserError(
          fmt::format("{}: {} must be at least {}; it is {}", name, what, lowest, value));
  return given;
}

/// `spatial`: how many dimensions the window slides over.
Geometry geometry(const std::string& name, const Tensor& x, int spatial, const Tensor& w,
                  const Tensor& bias, const ConvOptions& options, bool one_type = true) {
  require_rank(name, w, spatial + 2);
  if (one_type) require_same_type(name, x, w);
  if (bias.defined()) {
    require_rank(name, bias, 1);
    require_same_type(name, x, bias);
  }
  Geometry g;
  g.spatial = spatial;
  const size_t count = static_cast<size_t>(g.spatial);
  g.strides = filled(name, "strides", options.strides, count, 1, 1);
  g.dilations = filled(name, "dilations", options.dilations, count, 1, 1);
  g.pads_begin = filled(name, "pads", options.pads_begin, count, 0, 0);
  g.pads_end = filled(name, "pads", options.pads_end, count, 0, 0);
  const Numbers ws = w.extents();
  g.kernel.assign(ws.begin() + 2, ws.end());
  g.groups = options.groups;
  if (g.groups < 1)
    throw UserError(fmt::format("{}: groups must be at least 1; it is {}", name, g.groups));
  return g;
}

/// Of x[n, c, d...].
int spatial_rank(const std::string& name, const Tensor& x) {
  if (x.rank() < 3 || x.rank() > 5)
    throw UserError(fmt::format(
        "{}: \"{}\" needs 1 to 3 spatial dimensions after batch and channels; its shape is {}",
        name, x.name(), shape_text(x.extents())));
  return x.rank() - 2;
}

/// Places of the window along spatial dimension d of that extent.
int64_t window_steps(const Geometry& g, int d, int64_t extent) {
  return window_extent(extent, g.kernel[d], g.strides[d], g.dilations[d],
                       g.pads_begin[d] + g.pads_end[d]);
}

/// x with as many zeros round it as the windows reach, name.pad; itself where they stay inside.
Tensor padded_source(const Geometry& g, const Tensor& x, const std::string& name) {
  Numbers shape = x.extents(), before(shape.size(), 0);
  for (int d = 0; d < g.spatial; ++d) {
    const int64_t extent = x.extent(2 + d), steps = window_steps(g, d, extent);
    const int64_t reached = (steps - 1) * g.strides[d] + g.dilations[d] * (g.kernel[d] - 1) + 1;
    const bool inside = g.pads_begin[d] == 0 && reached <= extent;
    if (steps == 0 || inside) continue;
    before[static_cast<size_t>(2 + d)] = g.pads_begin[d];
    shape[static_cast<size_t>(2 + d)] = reached;
  }
  return pad_to(x, before, shape, zero(x.dtype()), name + ".pad");
}

void check_channels(const std::string& name, int64_t c_in, int64_t w_in, int64_t c_out,
                    int64_t groups, const Tensor& bias) {
  if (c_in != w_in * groups || c_out % groups != 0)
    throw UserError(
        fmt::format("{}: the channels do not fit: {} input channels, weights for {} a group, {} "
                    "output channels, {} groups",
                    name, c_in, w_in, c_out, groups));
  if (bias.defined() && bias.extent(0) != c_out)
    throw UserError(fmt::format("{}: \"{}\" has {} elements; there are {} output channels", name,
                                bias.name(), bias.extent(0), c_out));
}

std::vector<std::string> spatial_names(const char* prefix, int count) {
  static const char* const kLetters[] = {"d", "h", "w"};
  std::vector<std::string> names;
  for (int d = 3 - count; d < 3; ++d) names.push_back(std::string(prefix) + kLetters[d]);
  return names;
}

std::vector<Axis> output_axes(int64_t batch, int64_t channels, const Numbers& spatial) {
  std::vector<Axis> axes = {Axis("n", batch), Axis("oc", channels)};
  const auto names = spatial_names("o", static_cast<int>(spatial.size()));
  for (size_t d = 0; d < spatial.size(); ++d) axes.emplace_back(names[d], spatial[d]);
  return axes;
}

/// Reduction axes over the group's channels and the kernel; those of extent 1 stay out and read
/// index 0.
struct KernelAxes {
  std::vector<Axis> reduce;
  Expr channel;
  std::vector<Expr> taps;
};

KernelAxes kernel_axes(int64_t channels, const Numbers& kernel) {
  KernelAxes k;
  auto index = [&](const std::string& name, int64_t extent) -> Expr {
    if (extent == 1) return int_imm(0);
    k.reduce.emplace_back(name, extent);
    return k.reduce.back().var;
  };
  k.channel = index("ic", channels);
  const auto names = spatial_names("k", static_cast<int>(kernel.size()));
  for (size_t d = 0; d < kernel.size(); ++d) k.taps.push_back(index(names[d], kernel[d]));
  return k;
}

/// Channel of the input that output channel `oc` reads as channel `inner` of its group.
Expr group_channel(const Expr& oc, const Expr& inner, int64_t groups, int64_t in_each,
                   int64_t out_each) {
  if (groups == 1) return inner;
  const Expr group = out_each == 1 ? oc : floor_div(oc, int_imm(out_each));
  return in_each == 1 ? group : group * int_imm(in_each) + inner;
}

/// The sum over the kernel's axes, or its only term.
Tensor summed(const std::string& name, const std::vector<Axis>& out, const KernelAxes& k,
              const Expr& term, const Tensor& bias, DType t) {
  Expr start;
  if (bias.defined()) start = as_type(term.dtype(), bias(out[1]));
  Expr total = term;
  if (!k.reduce.empty())
    total = sum(term, k.reduce, {.start = {start}});
  else if (start.defined())
    total = term + start;  // x before the bias: parameters come in order of first use
  if (total.dtype() == t) return compute(name, out, total);
  return compute(name, out, cast(t, compute(name + ".acc", out, total).at(indices_of(out))));
}

/// What a blocked convolution sums: axes in the order of the packed weights, the product's factors,
/// and where a point counts.
struct BlockedSum {
  std::vector<Axis> reduce;
  Expr x_channel, x_lane;  // x_lane undefined: x is not blocked
  Expr w_channel, counts;
  std::vector<Expr> taps;
};

/// The channels of x that output channel block `ob`, lane `lane` reads.
BlockedSum blocked_channels(const Geometry& g, int64_t in_each, int64_t out_each, int64_t block,
                            bool plain, const Axis& ob, const Axis& lane) {
  BlockedSum s;
  const Expr oc = Expr(ob) * int_imm(block) + Expr(lane);
  if (!plain && in_each == 1 && out_each == 1) {  // depthwise
    s.x_channel = ob;
    s.x_lane = lane;
    s.w_channel = int_imm(0);
    return s;
  }
  const bool whole = g.groups == 1 || (in_each % block == 0 && out_each % block == 0);
  if (plain || !whole) {
    s.reduce.emplace_back("ic", in_each);
    s.w_channel = s.reduce.back();
    const Expr channel = group_channel(oc, s.w_channel, g.groups, in_each, out_each);
    s.x_channel = plain ? channel : floor_div(channel, int_imm(block));
    if (!plain) s.x_lane = floor_mod(channel, int_imm(block));
    return s;
  }
  const int64_t blocks = (in_each + block - 1) / block;
  const Axis ib("ib", blocks), i("i", std::min(block, in_each));
  if (in_each < block) {  // a part of the only block
    s.reduce = {i};
    s.x_channel = int_imm(0);
    s.x_lane = s.w_channel = i;
    return s;
  }
  s.reduce = {ib, i};
  s.x_channel = group_channel(ob, ib, g.groups, blocks, std::max<int64_t>(1, out_each / block));
  s.x_lane = i;
  s.w_channel = Expr(ib) * int_imm(block) + Expr(i);
  if (blocks > 1 && in_each % block != 0) s.counts = s.w_channel < int_imm(in_each);
  return s;
}

void check_blocks(const std::string& name, const Tensor& x, int64_t c_in, int64_t block,
                  int spatial) {
  if (block < 1) throw UserError(fmt::format("{}: a block of {} channels", name, block));
  const bool plain = x.rank() == spatial + 2;
  const int64_t blocks = (c_in + block - 1) / block;
  if (plain ? x.extent(1) == c_in : x.extent(1) == blocks && x.extent(spatial + 2) == block) return;
  const char* image = spatial == 1 ? "w" : "h, w";
  throw UserError(fmt::format(
      "{}: \"{}\" of shape {} does not hold {} channels: [n, {}, {}, {}] does, or [n, {}, {}]",
      name, x.name(), shape_text(x.extents()), c_in, blocks, image, block, c_in, image));
}

/// Puts the window's taps before the channels, those of one block: what one tap adds needs no
/// condition of its own.
void add_taps(BlockedSum& s, const Geometry& g) {
  const auto names = spatial_names("k", g.spatial);
  const bool channels_last = !s.reduce.empty();
  for (int d = 0; d < g.spatial; ++d) {
    if (g.kernel[d] == 1) {
      s.taps.push_back(int_imm(0));
      continue;
    }
    const Axis tap(names[d], g.kernel[d]);
    s.taps.push_back(tap);
    s.reduce.insert(s.reduce.end() - (channels_last ? 1 : 0), tap);
  }
}

/// Where the window stands along spatial dimension d of a given extent: adds the axis of the result
/// to `out`, and to what counts that this is inside.
Expr slide(BlockedSum& s, const Geometry& g, int d, int64_t extent, std::vector<Axis>& out) {
  const int64_t steps = window_steps(g, d, extent);
  out.emplace_back(spatial_names("o", g.spatial)[static_cast<size_t>(d)], steps);
  const int64_t reached = (steps - 1) * g.strides[d] + g.dilations[d] * (g.kernel[d] - 1);
  Expr at = out.back();
  if (g.strides[d] != 1) at = at * int_imm(g.strides[d]);
  if (g.kernel[d] != 1) at = at + s.taps[d] * int_imm(g.dilations[d]);
  if (g.pads_begin[d] != 0) {
    at = at - int_imm(g.pads_begin[d]);
    s.counts = both(s.counts, at >= int_imm(0));
  }
  if (reached - g.pads_begin[d] >= extent) s.counts = both(s.counts, at < int_imm(extent));
  return at;
}

/// The points that count, added up from the bias on.
Expr blocked_total(const BlockedSum& s, const Expr& term, Expr start) {
  if (!s.reduce.empty()) return sum(term, s.reduce, {.start = {start}, .condition = s.counts});
  const Expr total = s.counts.defined() ? select(s.counts, term, zero(term.dtype())) : term;
  return start.defined() ? total + start : total;
}

/// The sum over channels in blocks, in type `acc`.
Tensor blocked_sum(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options,
                   int64_t block, DType acc, const std::string& name, int spatial,
                   bool one_type = true) {
  const bool plain = x.rank() == spatial + 2;
  if (!plain) require_rank(name, x, spatial + 3);
  const Geometry g = geometry(name, x, spatial, w, bias, options, one_type);
  const int64_t c_out = w.extent(0), in_each = w.extent(1), c_in = in_each * g.groups;
  check_blocks(name, x, c_in, block, spatial);
  check_channels(name, c_in, in_each, c_out, g.groups, bias);
  const Axis n("n", x.extent(0)), ob("ob", (c_out + block - 1) / block), lane("o", block);
  BlockedSum s = blocked_channels(g, in_each, c_out / g.groups, block, plain, ob, lane);
  add_taps(s, g);
  std::vector<Axis> out = {n, ob};
  std::vector<Expr> x_at = {n, s.x_channel};
  const Expr oc = Expr(ob) * int_imm(block) + Expr(lane);
  std::vector<Expr> w_at = {oc, s.w_channel};
  for (int d = 0; d < spatial; ++d) {
    x_at.push_back(slide(s, g, d, x.extent(2 + d), out));
    w_at.push_back(s.taps[d]);
  }
  out.push_back(lane);
  if (s.x_lane.defined()) x_at.push_back(s.x_lane);
  const bool padded = c_out % block != 0;
  if (padded) s.counts = both(s.counts, oc < int_imm(c_out));
  Expr start;
  if (bias.defined()) {
    start = as_type(acc, bias(oc));
    if (padded) start = select(oc < int_imm(c_out), start, zero(acc));
  }
  return compute(name, out,
                 blocked_total(s, as_type(acc, x.at(x_at)) * as_type(acc, w.at(w_at)), start));
}

Tensor blocked_conv(const Tensor& x, const Tensor& w, const Tensor& bias,
                    const ConvOptions& options, int64_t block, const std::string& name,
                    int spatial) {
  const DType acc = accumulator_type(x.dtype());
  if (acc == x.dtype()) return blocked_sum(x, w, bias, options, block, acc, name, spatial);
  const Tensor total = blocked_sum(x, w, bias, options, block, acc, name + ".acc", spatial);
  std::vector<std::string> names = spatial_names("o", spatial);
  names.insert(names.begin(), {"n", "ob"});
  names.push_back("o");
  const std::vector<Axis> out = named_axes(total.extents(), names);
  return compute(name, out, cast(x.dtype(), total.at(indices_of(out))));
}

}  // namespace

int64_t window_extent(int64_t extent, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t pads) {
  const int64_t last = extent + pads - dilation * (kernel - 1) - 1;
  return last < 0 ? 0 : last / stride + 1;
}

Tensor conv(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options,
            const std::string& name) {
  const Geometry g = geometry(name, x, spatial_rank(name, x), w, bias, options);
  const int64_t c_in = x.extent(1), c_out = w.extent(0), in_each = w.extent(1);
  check_channels(name, c_in, in_each, c_out, g.groups, bias);
  Numbers spatial;
  for (int d = 0; d < g.spatial; ++d) spatial.push_back(window_steps(g, d, x.extent(2 + d)));
  const Tensor source = padded_source(g, x, name);
  const std::vector<Axis> out = output_axes(x.extent(0), c_out, spatial);
  const KernelAxes k = kernel_axes(in_each, g.kernel);
  std::vector<Expr> x_at = {out[0],
                            group_channel(out[1], k.channel, g.groups, in_each, c_out / g.groups)};
  std::vector<Expr> w_at = {out[1], k.channel};
  for (int d = 0; d < g.spatial; ++d) {
    Expr at = out[2 + d].var;
    if (g.strides[d] != 1) at = at * int_imm(g.strides[d]);
    Expr tap = k.taps[d];
    if (g.kernel[d] != 1) at = at + (g.dilations[d] == 1 ? tap : tap * int_imm(g.dilations[d]));
    x_at.push_back(at);
    w_at.push_back(tap);
  }
  const DType acc = accumulator_type(x.dtype());
  const Expr term = as_type(acc, source.at(x_at)) * as_type(acc, w.at(w_at));
  return summed(name, out, k, term, bias, x.dtype());
}

Tensor conv1d_blocked(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const ConvOptions& options, int64_t block, const std::string& name) {
  return blocked_conv(x, w, bias, options, block, name, 1);
}

Tensor conv2d_blocked(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const ConvOptions& options, int64_t block, const std::string& name) {
  return blocked_conv(x, w, bias, options, block, name, 2);
}

Tensor conv2d_wide(const Tensor& x, const Tensor& w, const ConvOptions& options, int64_t block,
                   const std::string& name) {
  require_rank(name, x, 5);
  if (options.groups != 1)
    throw UserError(
        fmt::format("{}: groups are 1; there are {}\n  try: conv2d_blocked", name, options.groups));
  require_same_wide_type(name, x, w);
  const Geometry g = geometry(name, x, 2, w, Tensor(), options, false);
  ConvOptions inside = options;
  inside.pads_begin = inside.pads_end = {};
  return blocked_sum(padded_source(g, x, name), w, Tensor(), inside, block, wide_type(x.dtype()),
                     name, 2, false);
}

Tensor conv_transpose(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const ConvOptions& options, const std::vector<int64_t>& output_padding,
                      const std::string& name) {
  const Geometry g = geometry(name, x, spatial_rank(name, x), w, bias, options);
  const size_t count = static_cast<size_t>(g.spatial);
  const Numbers extra = filled(name, "output_padding", output_padding, count, 0, 0);
  const int64_t c_in = x.extent(1), out_each = w.extent(1), c_out = out_each * g.groups;
  if (w.extent(0) != c_in || c_in % g.groups != 0)
    throw UserError(
        fmt::format("{}: the channels do not fit: {} input channels, weights for {}, {} groups",
                    name, c_in, w.extent(0), g.groups));
  check_channels(name, c_in, c_in / g.groups, c_out, g.groups, bias);
  Numbers spatial;
  for (int d = 0; d < g.spatial; ++d)
    spatial.push_back(std::max<int64_t>(0, g.strides[d] * (x.extent(2 + d) - 1) + extra[d] +
                                               g.dilations[d] * (g.kernel[d] - 1) + 1 -
                                               g.pads_begin[d] - g.pads_end[d]));
  const std::vector<Axis> out = output_axes(x.extent(0), c_out, spatial);
  const int64_t in_each = c_in / g.groups;
  const KernelAxes k = kernel_axes(in_each, g.kernel);
  const Expr channel = group_channel(out[1], k.channel, g.groups, in_each, out_each);
  std::vector<Expr> x_at = {out[0], channel};
  std::vector<Expr> w_at = {channel,
                            g.groups == 1 ? Expr(out[1]) : floor_mod(out[1], int_imm(out_each))};
  Expr reaches;
  for (int d = 0; d < g.spatial; ++d) {
    const Expr tap = k.taps[d];
    const Expr from = Expr(out[2 + d]) + int_imm(g.pads_begin[d]) - tap * int_imm(g.dilations[d]);
    const Expr at = floor_div(from, int_imm(g.strides[d]));
    reaches = both(reaches, from >= int_imm(0) && at < int_imm(x.extent(2 + d)));
    if (g.strides[d] != 1)
      reaches = both(reaches, floor_mod(from, int_imm(g.strides[d])) == int_imm(0));
    x_at.push_back(at);
    w_at.push_back(tap);
  }
  const DType acc = accumulator_type(x.dtype());
  const Expr term = select(reaches, as_type(acc, x.at(x_at)), zero(acc)) * as_type(acc, w.at(w_at));
  return summed(name, out, k, term, bias, x.dtype());
}

}  // namespace tenon
