#include "kernels/pool.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "kernels/axes.h"
#include "kernels/reduce.h"

namespace tenon {
namespace {

using Numbers = std::vector<int64_t>;

/// A pool with every list filled in: axes of the result and the window, the input's element, and
/// which taps are inside the input (undefined: all).
struct Windows {
  PoolOptions options;
  Numbers input;  // spatial extents
  std::vector<Axis> out, window;
  Expr element, inside;
};

Numbers filled(const std::string& name, std::string_view what, const Numbers& given, size_t count,
               int64_t fallback, int64_t lowest) {
  if (given.empty() && fallback >= 0) return Numbers(count, fallback);
  if (given.size() != count)
    throw UserError(fmt::format("{}: {} has {} numbers; there are {} spatial dimensions", name,
                                what, given.size(), count));
  for (int64_t value : given)
    if (value < lowest)
      throw UserError(
          fmt::format("{}: {} must be at least {}; it is {}", name, what, lowest, value));
  return given;
}

/// Where the window stands along spatial dimension d: adds the axes of the result and the window,
/// and to what is inside that this is.
Expr slide(Windows& w, size_t d, const std::string& letter) {
  const PoolOptions& o = w.options;
  const int64_t extent = pool_extent(w.input[d], o.kernel[d], o.strides[d], o.dilations[d],
                                     o.pads_begin[d], o.pads_end[d], o.ceil_mode);
  w.out.emplace_back("o" + letter, extent);
  const int64_t last =
      (extent - 1) * o.strides[d] + o.dilations[d] * (o.kernel[d] - 1) - o.pads_begin[d];
  Expr at = w.out.back().var;
  if (o.strides[d] != 1) at = at * int_imm(o.strides[d]);
  const bool only = w.window.empty() && d + 1 == o.kernel.size();  // there must be one
  if (o.kernel[d] != 1 || only) {
    w.window.emplace_back("k" + letter, o.kernel[d]);
    const Expr tap = w.window.back().var;
    at = at + (o.dilations[d] == 1 ? tap : tap * int_imm(o.dilations[d]));
  }
  if (o.pads_begin[d] != 0) {
    at = at - int_imm(o.pads_begin[d]);
    w.inside = both(w.inside, at >= int_imm(0));
  }
  if (last >= w.input[d]) w.inside = both(w.inside, at < int_imm(w.input[d]));
  return at;
}

Windows windows(const Tensor& x, const PoolOptions& given, const std::string& name) {
  if (x.rank() < 3 || x.rank() > 5)
    throw UserError(fmt::format(
        "{}: \"{}\" needs 1 to 3 spatial dimensions after batch and channels; its shape is {}",
        name, x.name(), shape_text(x.extents())));
  Windows w;
  const Numbers extents = x.extents();
  const size_t count = extents.size() - 2;
  w.options = given;
  w.options.kernel = filled(name, "kernel", given.kernel, count, -1, 1);
  w.options.strides = filled(name, "strides", given.strides, count, 1, 1);
  w.options.dilations = filled(name, "dilations", given.dilations, count, 1, 1);
  w.options.pads_begin = filled(name, "pads", given.pads_begin, count, 0, 0);
  w.options.pads_end = filled(name, "pads", given.pads_end, count, 0, 0);
  w.input.assign(extents.begin() + 2, extents.end());
  static const char* const kLetters[] = {"d", "h", "w"};
  w.out = {Axis("n", extents[0]), Axis("c", extents[1])};
  std::vector<Expr> at = {w.out[0], w.out[1]};
  for (size_t d = 0; d < count; ++d) at.push_back(slide(w, d, kLetters[3 - count + d]));
  w.element = x.at(at);
  return w;
}

/// How many taps of each window lie inside the input (or, with count_include_pad, inside the padded
/// input).
Expr counted(const Windows& w) {
  const PoolOptions& o = w.options;
  Expr count = int_imm(1);
  for (size_t d = 0; d < w.input.size(); ++d) {
    const Expr start = Expr(w.out[2 + d]) * int_imm(o.strides[d]) - int_imm(o.pads_begin[d]);
    const int64_t low = o.count_include_pad ? -o.pads_begin[d] : 0;
    const int64_t high = w.input[d] + (o.count_include_pad ? o.pads_end[d] : 0);
    const Expr step = int_imm(o.dilations[d]), round_up = int_imm(o.dilations[d] - 1);
    const Expr first = max(floor_div(int_imm(low) - start + round_up, step), int_imm(0));
    const Expr end = min(floor_div(int_imm(high) - start + round_up, step), int_imm(o.kernel[d]));
    const int64_t last_start = (*as_int(w.out[2 + d].extent) - 1) * o.strides[d] - o.pads_begin[d];
    const bool whole =
        -o.pads_begin[d] >= low && last_start + o.dilations[d] * (o.kernel[d] - 1) < high;
    count = count * (whole ? int_imm(o.kernel[d]) : end - first);
  }
  return count;
}

/// One window, and it is the image.
bool is_whole(const Windows& w) {
  return w.options.kernel == w.input &&
         std::all_of(w.out.begin() + 2, w.out.end(),
                     [](const Axis& axis) { return as_int(axis.extent) == 1; }) &&
         !w.inside.defined();
}

}  // namespace

int64_t pool_extent(int64_t extent, int64_t kernel, int64_t stride, int64_t dilation,
                    int64_t pad_begin, int64_t pad_end, bool ceil_mode) {
  const int64_t room = extent + pad_begin + pad_end - dilation * (kernel - 1) - 1;
  if (room < 0) return 0;
  int64_t result = (ceil_mode ? (room + stride - 1) / stride : room / stride) + 1;
  if (ceil_mode && (result - 1) * stride >= extent + pad_begin) --result;
  return result;
}

Tensor max_pool(const Tensor& x, const PoolOptions& options, const std::string& name) {
  const Windows w = windows(x, options, name);
  if (is_whole(w)) return global_max_pool(x, name);
  const ReduceOptions inside = {.condition = w.inside};
  return compute(name, w.out,
                 is_bool(x.dtype()) ? any(w.element, w.window, inside)
                                    : reduce_max(w.element, w.window, inside));
}

Tensor average_pool(const Tensor& x, const PoolOptions& options, const std::string& name) {
  require_float(name, x);
  const DType acc = accumulator_type(x.dtype());
  const Windows w = windows(x, options, name);
  if (is_whole(w)) return global_average_pool(x, name);
  const Tensor total = compute(name + ".sum", w.out,
                               sum(as_type(acc, w.element), w.window, {.condition = w.inside}));
  const Expr count = counted(w), value = total.at(indices_of(w.out));
  const auto constant = as_int(count);
  return compute(name, w.out,
                 as_type(x.dtype(), value / (constant ? imm(static_cast<double>(*constant), acc)
                                                      : cast(acc, count))));
}

Tensor lp_pool(const Tensor& x, const PoolOptions& options, int64_t p, const std::string& name) {
  require_float(name, x);
  if (p < 1) throw UserError(fmt::format("{}: p must be at least 1; it is {}", name, p));
  const DType acc = accumulator_type(x.dtype());
  const Windows w = windows(x, options, name);
  const Expr e = as_type(acc, w.element);
  const Expr term = p == 1   ? abs(e)
                    : p == 2 ? e * e
                             : pow(abs(e), imm(static_cast<double>(p), acc));
  const Tensor total = compute(name + ".sum", w.out, sum(term, w.window, {.condition = w.inside}));
  const Expr value = total.at(indices_of(w.out));
  const Expr root = p == 1   ? value
                    : p == 2 ? sqrt(value)
                             : pow(value, imm(1.0 / static_cast<double>(p), acc));
  return compute(name, w.out, as_type(x.dtype(), root));
}

Tensor global_max_pool(const Tensor& x, const std::string& name) {
  std::vector<int64_t> axes;
  for (int d = 2; d < x.rank(); ++d) axes.push_back(d);
  return reduce("max", x, axes, true, name);
}

Tensor global_average_pool(const Tensor& x, const std::string& name) {
  std::vector<int64_t> axes;
  for (int d = 2; d < x.rank(); ++d) axes.push_back(d);
  return reduce("mean", x, axes, true, name);
}

}  // namespace tenon
