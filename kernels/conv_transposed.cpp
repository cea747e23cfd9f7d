#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "kernels/axes.h"
#include "kernels/conv.h"
#include "schedule/composites/cost.h"

namespace tenon {
namespace {

using Numbers = std::vector<int64_t>;

int64_t number_at(const Numbers& given, size_t d, int64_t fallback) {
  return given.empty() ? fallback : given.at(d);
}

void check(const std::string& name, const Tensor& x, const Tensor& w, const Tensor& bias,
           const ConvOptions& o, int64_t block) {
  require_rank(name, x, 5);
  require_rank(name, w, 4);
  require_same_type(name, x, w);
  if (block < 1) throw UserError(fmt::format("{}: a block of {} channels", name, block));
  if (x.extent(1) != ceil_div(w.extent(0), block) || x.extent(4) != block)
    throw UserError(fmt::format(
        "{}: \"{}\" of shape {} does not hold {} channels: [n, {}, h, w, {}] does", name, x.name(),
        shape_text(x.extents()), w.extent(0), ceil_div(w.extent(0), block), block));
  const bool plain = std::all_of(o.dilations.begin(), o.dilations.end(),
                                 [](int64_t dilation) { return dilation == 1; });
  if (!plain || o.groups != 1)
    throw UserError(fmt::format("{}: dilations and groups are 1\n  try: conv_transpose", name));
  for (size_t d = 0; d < 2; ++d)
    if (number_at(o.strides, d, 1) < 1)
      throw UserError(fmt::format("{}: strides must be at least 1; there is {}", name,
                                  number_at(o.strides, d, 1)));
  if (!bias.defined()) return;
  require_rank(name, bias, 1);
  require_same_type(name, x, bias);
  if (bias.extent(0) != w.extent(1))
    throw UserError(fmt::format("{}: \"{}\" has {} elements; there are {} output channels", name,
                                bias.name(), bias.extent(0), w.extent(1)));
}

/// One spatial dimension: output o = q * stride + r reads tap kind(r) + stride * j at
/// q + shift(r) - j.
struct Direction {
  int64_t extent = 0, stride = 1;  // extent of the result
  Axis q, r, j;
  Expr at, tap, counts;

  Direction(const std::string& letter, int64_t extent, int64_t stride, int64_t taps)
      : extent(extent),
        stride(stride),
        q("q" + letter, ceil_div(extent, stride)),
        r("r" + letter, stride),
        j("k" + letter, ceil_div(taps, stride)) {}
};

Direction direction(size_t d, const Tensor& x, const Tensor& w, const ConvOptions& o,
                    const Numbers& output_padding) {
  const int n = static_cast<int>(d);
  const int64_t s = number_at(o.strides, d, 1), before = number_at(o.pads_begin, d, 0),
                after = number_at(o.pads_end, d, 0), h = x.extent(2 + n), k = w.extent(2 + n);
  Direction out(
      d == 0 ? "h" : "w",
      std::max<int64_t>(0, s * (h - 1) + number_at(output_padding, d, 0) + k - before - after), s,
      k);
  const Expr from = s == 1 ? int_imm(before) : Expr(out.r) + int_imm(before);
  const Expr shift = s == 1 ? from : floor_div(from, int_imm(s));
  out.at = Expr(out.q) + shift - Expr(out.j);
  out.tap = s == 1 ? Expr(out.j) : floor_mod(from, int_imm(s)) + Expr(out.j) * int_imm(s);
  out.counts = both(out.at >= int_imm(0), out.at < int_imm(h));
  if (k % s != 0) out.counts = both(out.counts, out.tap < int_imm(k));
  return out;
}

}  // namespace

Tensor conv2d_transpose_blocked(const Tensor& x, const Tensor& w, const Tensor& bias,
                                const ConvOptions& options, const Numbers& output_padding,
                                int64_t block, const std::string& name) {
  check(name, x, w, bias, options, block);
  const int64_t c_in = w.extent(0), c_out = w.extent(1);
  const Direction h = direction(0, x, w, options, output_padding),
                  v = direction(1, x, w, options, output_padding);
  const Axis n("n", x.extent(0)), ob("ob", ceil_div(c_out, block)), o("o", block);
  const Axis ib("ib", x.extent(1)), i("i", std::min(block, c_in));
  const Expr channel = Expr(ib) * int_imm(block) + Expr(i),
             oc = Expr(ob) * int_imm(block) + Expr(o);
  Expr counts = both(h.counts, v.counts);
  if (x.extent(1) > 1 && c_in % block != 0) counts = both(counts, channel < int_imm(c_in));
  if (c_out % block != 0) counts = both(counts, oc < int_imm(c_out));
  const DType acc = accumulator_type(x.dtype());
  Expr start;
  if (bias.defined()) {
    start = as_type(acc, bias(oc));
    if (c_out % block != 0) start = select(oc < int_imm(c_out), start, zero(acc));
  }
  const Expr term =
      as_type(acc, x(n, ib, h.at, v.at, i)) * as_type(acc, w(channel, oc, h.tap, v.tap));
  const Tensor kinds =
      compute(name + ".kinds", {h.r, v.r, n, ob, h.q, v.q, o},
              sum(term, {ib, h.j, v.j, i}, {.start = {start}, .condition = counts}));
  const Axis oh("oh", h.extent), ow("ow", v.extent);
  const auto kind = [](const Axis& at, int64_t s) { return floor_mod(at, int_imm(s)); };
  const auto step = [](const Axis& at, int64_t s) { return floor_div(at, int_imm(s)); };
  return compute(name, {n, ob, oh, ow, o},
                 as_type(x.dtype(), kinds(kind(oh, h.stride), kind(ow, v.stride), n, ob,
                                          step(oh, h.stride), step(ow, v.stride), o)));
}

}  // namespace tenon
