#include "kernels/winograd.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <limits>

#include "kernels/axes.h"
#include "schedule/composites/cost.h"

namespace tenon {
namespace {

using Values = std::vector<Expr>;

/// Of the estimate that chooses a tile: f32, multiply-adds a cycle in vectors of 16, cycles a
/// transformed element (0.15: two to three instructions a vector), bytes of weights that a
/// second cache keeps, and a cycle from beyond it. Ratios decide, and they are much the same for
/// other vectors. The choice is the formula's: the same for all machines.
constexpr double kBytes = 4, kAddsPerCycle = 32, kTransformCycles = 0.15, kKept = 1 << 20,
                 kFarBytes = 7;
/// Of fewer channels the sums are too short to pay for the transforms.
constexpr int64_t kFewestChannels = 16;

Expr times(double factor, const Expr& e) { return imm(factor, e.dtype()) * e; }

/// B' d: sums are written out, without products by 0 and 1; rows that come in pairs are the sum and
/// the difference of the same two parts.
Values input_rows(int64_t m, const Values& d) {
  if (m == 2) return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
  const Expr even = d[4] - times(4, d[2]), odd = d[3] - times(4, d[1]), far = d[4] - d[2],
             slope = d[3] - d[1];
  return {times(4, d[0]) + (d[4] - times(5, d[2])),
          even + odd,
          even - odd,
          far + times(2, slope),
          far - times(2, slope),
          times(4, d[1]) + (d[5] - times(5, d[3]))};
}

/// G g
Values weight_rows(int64_t m, const Values& g) {
  if (m == 2) {
    const Expr ends = g[0] + g[2];
    return {g[0], times(0.5, ends + g[1]), times(0.5, ends - g[1]), g[2]};
  }
  const Expr ends = g[0] + g[2], wide = g[0] + times(4, g[2]), twice = times(2, g[1]);
  return {times(0.25, g[0]),
          times(-1.0 / 6, ends + g[1]),
          times(-1.0 / 6, ends - g[1]),
          times(1.0 / 24, wide + twice),
          times(1.0 / 24, wide - twice),
          g[2]};
}

/// A' x
Values output_rows(int64_t m, const Values& x) {
  if (m == 2) return {x[0] + (x[1] + x[2]), (x[1] - x[2]) - x[3]};
  const Expr near = x[1] + x[2], far = x[3] + x[4], slope = x[1] - x[2], steep = x[3] - x[4];
  return {(x[0] + near) + far, slope + times(2, steep), near + times(4, far),
          (slope + x[5]) + times(8, steep)};
}

/// values[which], for an index that schedules unroll.
Expr pick(const Expr& which, const Values& values) {
  Expr chosen = values.back();
  for (size_t n = values.size() - 1; n-- > 0;)
    chosen = select(which == int_imm(static_cast<int64_t>(n)), values[n], chosen);
  return chosen;
}

template <class F>
Values each(int64_t count, F&& f) {
  Values values;
  for (int64_t n = 0; n < count; ++n) values.push_back(f(int_imm(n)));
  return values;
}

void check_tile(const std::string& name, int64_t m) {
  if (m != 2 && m != 4)
    throw UserError(
        fmt::format("{}: tiles of {} x {} pixels; there are F(2x2,3x3) and F(4x4,3x3): tile=2 or "
                    "tile=4",
                    name, m, m));
}

void check_type(const std::string& name, const Tensor& t) {
  if (t.dtype() == DType::f32 || t.dtype() == DType::f64) return;
  throw UserError(
      fmt::format("{}: \"{}\" is {}; Winograd's sums need f32 or f64\n  try: the direct "
                  "convolution, conv2d_blocked",
                  name, t.name(), tenon::name(t.dtype())));
}

/// Shapes of one convolution, checked.
struct WinogradShape {
  int64_t m = 0, t = 0, c_in = 0, c_out = 0, block = 0, rows = 0, columns = 0, top = 0, left = 0;
};

int64_t pad_at(const std::vector<int64_t>& pads, size_t d) { return pads.empty() ? 0 : pads[d]; }

WinogradShape shape_of(const std::string& name, const Tensor& x, const Tensor& u,
                       const Tensor& bias, const ConvOptions& o, int64_t c_out) {
  require_rank(name, x, 5);
  require_rank(name, u, 5);
  require_same_type(name, x, u);
  check_type(name, x);
  WinogradShape s;
  s.t = u.extent(0);
  s.m = s.t - 2;
  check_tile(name, s.m);
  s.c_in = u.extent(3);
  s.c_out = c_out;
  s.block = u.extent(4);
  const bool fits = u.extent(1) == s.t && u.extent(2) == ceil_div(c_out, s.block) &&
                    x.extent(1) == ceil_div(s.c_in, s.block) && x.extent(4) == s.block;
  if (!fits)
    throw UserError(fmt::format(
        "{}: \"{}\" of shape {} and \"{}\" of shape {} do not fit {} output "
        "channels: [n, {}, h, w, {}] and [{}, {}, {}, {}, {}] do",
        name, x.name(), shape_text(x.extents()), u.name(), shape_text(u.extents()), c_out,
        ceil_div(s.c_in, s.block), s.block, s.t, s.t, ceil_div(c_out, s.block), s.c_in, s.block));
  const auto ones = [](const std::vector<int64_t>& steps) {
    return std::all_of(steps.begin(), steps.end(), [](int64_t step) { return step == 1; });
  };
  if (!ones(o.strides) || !ones(o.dilations) || o.groups != 1)
    throw UserError(fmt::format("{}: strides, dilations and groups are 1", name));
  if (bias.defined()) {
    require_rank(name, bias, 1);
    require_same_type(name, x, bias);
    if (bias.extent(0) != c_out)
      throw UserError(fmt::format("{}: \"{}\" has {} elements; there are {} output channels", name,
                                  bias.name(), bias.extent(0), c_out));
  }
  s.top = pad_at(o.pads_begin, 0);
  s.left = pad_at(o.pads_begin, 1);
  s.rows = window_extent(x.extent(2), 3, 1, 1, s.top + pad_at(o.pads_end, 0));
  s.columns = window_extent(x.extent(3), 3, 1, 1, s.left + pad_at(o.pads_end, 1));
  return s;
}

/// V[a, b, n, ib, th, tw, i]: the tiles of the input, transformed along rows, then columns.
Tensor transformed_input(const Tensor& x, const WinogradShape& s, const std::string& name) {
  const Axis a("a", s.t), j("j", s.t), n("n", x.extent(0)), ib("ib", x.extent(1)),
      th("th", ceil_div(s.rows, s.m)), tw("tw", ceil_div(s.columns, s.m)), i("i", s.block);
  const auto inside = [](const Expr& at, int64_t extent, int64_t before, int64_t reached) {
    Expr yes;
    if (before > 0) yes = at >= int_imm(0);
    return reached - before > extent ? both(yes, at < int_imm(extent)) : yes;
  };
  const Values column = each(s.t, [&](const Expr& r) {
    const Expr h = Expr(th) * int_imm(s.m) + r - int_imm(s.top),
               w = Expr(tw) * int_imm(s.m) + Expr(j) - int_imm(s.left);
    const Expr counts = both(inside(h, x.extent(2), s.top, ceil_div(s.rows, s.m) * s.m + 2),
                             inside(w, x.extent(3), s.left, ceil_div(s.columns, s.m) * s.m + 2));
    const Expr value = x(n, ib, h, w, i);
    return counts.defined() ? select(counts, value, zero(x.dtype())) : value;
  });
  const Tensor rows =
      compute(name + ".rows", {a, j, n, ib, th, tw, i}, pick(a, input_rows(s.m, column)));
  const Axis b("b", s.t);
  const Values row = each(s.t, [&](const Expr& k) { return rows(a, k, n, ib, th, tw, i); });
  return compute(name + ".input", {a, b, n, ib, th, tw, i}, pick(b, input_rows(s.m, row)));
}

/// M[a, b, n, ob, th, tw, o] = sum over channels of U * V
Tensor products(const Tensor& v, const Tensor& u, const WinogradShape& s, const std::string& name) {
  const Axis a("a", s.t), b("b", s.t), n("n", v.extent(2)), ob("ob", u.extent(2)),
      th("th", v.extent(4)), tw("tw", v.extent(5)), o("o", s.block);
  const Axis ib("ib", v.extent(3)), i("i", std::min(s.block, s.c_in));
  const Expr channel = Expr(ib) * int_imm(s.block) + Expr(i);
  Expr counts;
  if (v.extent(3) > 1 && s.c_in % s.block != 0) counts = channel < int_imm(s.c_in);
  return compute(
      name + ".products", {a, b, n, ob, th, tw, o},
      sum(v(a, b, n, ib, th, tw, i) * u(a, b, ob, channel, o), {ib, i}, {.condition = counts}));
}

}  // namespace

Tensor winograd_weights(const Tensor& w, int64_t m, int64_t block, const std::string& name) {
  check_tile(name, m);
  require_rank(name, w, 4);
  check_type(name, w);
  if (w.extent(2) != 3 || w.extent(3) != 3)
    throw UserError(fmt::format("{}: \"{}\" has kernels of {} x {}; they are 3 x 3", name, w.name(),
                                w.extent(2), w.extent(3)));
  if (block < 1) throw UserError(fmt::format("{}: a block of {} channels", name, block));
  const int64_t t = m + 2, c_out = w.extent(0);
  const Axis a("a", t), j("j", 3), b("b", t), oc("oc", c_out), ic("ic", w.extent(1));
  const Values column = each(3, [&](const Expr& r) { return w(oc, ic, r, j); });
  const Tensor rows = compute(name + ".rows", {a, j, oc, ic}, pick(a, weight_rows(m, column)));
  const Axis ob("ob", ceil_div(c_out, block)), o("o", block);
  const Expr channel = Expr(ob) * int_imm(block) + Expr(o);
  const Values row = each(3, [&](const Expr& k) { return rows(a, k, channel, ic); });
  Expr value = pick(b, weight_rows(m, row));
  if (c_out % block != 0) value = select(channel < int_imm(c_out), value, zero(w.dtype()));
  return compute(name, {a, b, ob, ic, o}, value);
}

Tensor conv2d_winograd(const Tensor& x, const Tensor& u, const Tensor& bias,
                       const ConvOptions& options, int64_t c_out, const std::string& name) {
  const WinogradShape s = shape_of(name, x, u, bias, options, c_out);
  const Tensor m = products(transformed_input(x, s, name), u, s, name);
  const Axis p("p", s.m), b("b", s.t), n("n", m.extent(2)), ob("ob", m.extent(3)),
      th("th", m.extent(4)), tw("tw", m.extent(5)), o("o", s.block);
  const Values column = each(s.t, [&](const Expr& k) { return m(k, b, n, ob, th, tw, o); });
  const Tensor rows =
      compute(name + ".pixels", {n, ob, th, tw, p, b, o}, pick(p, output_rows(s.m, column)));
  const Axis oh("oh", s.rows), ow("ow", s.columns);
  const Expr side = int_imm(s.m), channel = Expr(ob) * int_imm(s.block) + Expr(o);
  const Values row = each(s.t, [&](const Expr& k) {
    return rows(n, ob, floor_div(oh, side), floor_div(ow, side), floor_mod(oh, side), k, o);
  });
  Expr value = pick(floor_mod(ow, side), output_rows(s.m, row));
  if (bias.defined()) value = value + bias(channel);
  if (c_out % s.block != 0) value = select(channel < int_imm(c_out), value, zero(x.dtype()));
  return compute(name, {n, ob, oh, ow, o}, value);
}

int64_t winograd_tile(int64_t c_in, int64_t c_out, int64_t oh, int64_t ow) {
  const double pixels = static_cast<double>(oh) * static_cast<double>(ow),
               pairs = static_cast<double>(c_in) * static_cast<double>(c_out);
  const auto seconds = [&](double products, double efficiency, double points) {
    const double far =
        pairs * points * kBytes > kKept ? pairs * points * kBytes / kFarBytes / 2 : 0;
    return pixels * products * pairs / kAddsPerCycle / efficiency + far;
  };
  if (c_in < kFewestChannels || c_out < kFewestChannels) return 0;
  double least = seconds(9, 0.85, 9);
  int64_t best = 0;
  for (const int64_t m : {2, 4}) {
    const double products = winograd_products(m, oh, ow), t = static_cast<double>(m + 2);
    const double transforms =
        pixels * products * static_cast<double>(c_in + c_out) * kTransformCycles;
    const double estimate = seconds(products, 0.8, t * t) + transforms;
    if (estimate >= least) continue;
    least = estimate;
    best = m;
  }
  return best;
}

double winograd_error_bound(int64_t m, int64_t c_in, DType type) {
  const double half_eps = type == DType::f64 ? std::numeric_limits<double>::epsilon() / 2
                                             : std::numeric_limits<float>::epsilon() / 2.0;
  // Roundings along one dimension: of G (m = 4: its coefficients too), B and A, taken twice.
  const double roundings = m == 2 ? 2 * (2 + 1 + 2) : 2 * (4 + 3 + 4);
  const double growth = m == 2 ? 8 : 48, channels = static_cast<double>(c_in);
  return (channels + roundings) * half_eps * channels * growth * growth;
}

double winograd_products(int64_t m, int64_t oh, int64_t ow) {
  const double covered = static_cast<double>(ceil_div(oh, m) * ceil_div(ow, m) * (m + 2) * (m + 2));
  return covered / static_cast<double>(std::max<int64_t>(1, oh * ow));
}

}  // namespace tenon
