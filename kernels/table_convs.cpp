#include "kernels/table_parts.h"
#include "schedule/composites/cost.h"

namespace tenon {
namespace {

using Inputs = std::vector<RefArray>;
using Shape = std::vector<int64_t>;

/// `dimensions`: 1 or 2.
std::vector<KernelArg> window_args(int dimensions, bool blocked) {
  std::vector<KernelArg> args = {number_arg("n", "images", "1"),
                                 number_arg("c_in", "input channels", "", 1)};
  if (dimensions == 2) args.push_back(number_arg("h", "height"));
  args.push_back(number_arg("w", "width"));
  args.push_back(number_arg("c_out", "output channels", "", 1));
  args.push_back(number_arg("k", "extent of the kernel", "", 1));
  args.push_back(number_arg("stride", "step of the window", "1", 1));
  args.push_back(number_arg("pad", "zeros at every side", "0"));
  args.push_back(number_arg("bias", "1: with a bias", "1"));
  if (blocked) args.push_back(number_arg("block", "channels in a block", "16", 1));
  return args;
}

ConvOptions options_of(const KernelArgs& a, size_t dimensions) {
  const Shape strides(dimensions, a.number("stride")), pads(dimensions, a.number("pad"));
  return {.strides = strides, .pads_begin = pads, .pads_end = pads};
}

Tensor bias_of(const KernelArgs& a) {
  return a.number("bias") ? a.tensor("B", {a.number("c_out")}) : Tensor();
}

double numbers(const KernelArgs& a, const std::vector<std::string>& names) {
  double product = 1;
  for (const std::string& name : names) product *= static_cast<double>(a.number(name));
  return product;
}

double line_flops(const KernelArgs& a) {
  return 2 * numbers(a, {"n", "c_in", "c_out", "k"}) *
         static_cast<double>(window_extent(a.number("w"), a.number("k"), a.number("stride"), 1,
                                           2 * a.number("pad")));
}

/// Every input meets every tap once.
double transposed_flops(const KernelArgs& a) {
  return 2 * numbers(a, {"n", "c_in", "c_out", "h", "w", "k", "k"});
}

Tensor line(const KernelArgs& a, bool blocked) {
  const int64_t n = a.number("n"), c = a.number("c_in"), w = a.number("w"), k = a.number("k");
  const auto weights = [&] { return a.tensor("W", {a.number("c_out"), c, k}); };
  if (!blocked) {
    const Tensor x = a.tensor("X", {n, c, w});
    return conv(x, weights(), bias_of(a), options_of(a, 1), "Y");
  }
  const int64_t block = a.number("block");
  const Tensor x = a.tensor("X", {n, ceil_div(c, block), w, block});
  return conv1d_blocked(x, weights(), bias_of(a), options_of(a, 1), block, "Y");
}

/// [n, c/block, w, block] as [n, c, 1, w], and back.
RefArray with_height(const RefArray& blocked, int64_t channels) {
  RefArray x = blocked;
  x.shape.insert(x.shape.begin() + 2, 1);
  return ref_unblocked(x, channels);
}

RefArray line_reference(const KernelArgs& a, const Inputs& in, bool blocked) {
  const RefArray* bias = a.number("bias") ? &in[2] : nullptr;
  if (!blocked) return ref_conv(in[0], in[1], bias, options_of(a, 1));
  RefArray x = with_height(in[0], a.number("c_in"));
  x.shape.erase(x.shape.begin() + 2);
  RefArray y = ref_conv(x, in[1], bias, options_of(a, 1));
  y.shape.insert(y.shape.begin() + 2, 1);
  y = ref_blocked(y, a.number("block"));
  y.shape.erase(y.shape.begin() + 2);
  return y;
}

KernelEntry line_entry(bool blocked) {
  return {
      blocked ? "conv1d_blocked" : "conv1d",
      blocked ? "conv1d on channels in blocks: X[n,c_in/block,w,block] -> "
                "Y[n,c_out/block,ow,block]"
              : "Y[n,c_out,ow] = X[n,c_in,w] * W[c_out,c_in,k] + B[c_out]",
      window_args(1, blocked),
      {"X", "W", "B"},
      [blocked](const KernelArgs& a) { return std::vector<Tensor>{line(a, blocked)}; },
      line_flops,
      [blocked](const KernelArgs& a, const Inputs& in) { return line_reference(a, in, blocked); }};
}

Tensor transposed(const KernelArgs& a, bool blocked) {
  const int64_t n = a.number("n"), c = a.number("c_in"), h = a.number("h"), w = a.number("w"),
                k = a.number("k");
  const auto weights = [&] { return a.tensor("W", {c, a.number("c_out"), k, k}); };
  if (!blocked) {
    const Tensor x = a.tensor("X", {n, c, h, w});
    return conv_transpose(x, weights(), bias_of(a), options_of(a, 2), {}, "Y");
  }
  const int64_t block = a.number("block");
  const Tensor x = a.tensor("X", {n, ceil_div(c, block), h, w, block});
  return conv2d_transpose_blocked(x, weights(), bias_of(a), options_of(a, 2), {}, block, "Y");
}

KernelEntry transposed_entry(bool blocked) {
  return {blocked ? "conv2d_transpose_blocked" : "conv2d_transpose",
          blocked ? "conv2d_transpose on channels in blocks: X[n,c_in/block,h,w,block] -> "
                    "Y[n,c_out/block,oh,ow,block]"
                  : "Y[n,c_out,oh,ow]: X[n,c_in,h,w] spread by W[c_in,c_out,k,k], plus B[c_out]",
          window_args(2, blocked),
          {"X", "W", "B"},
          [blocked](const KernelArgs& a) { return std::vector<Tensor>{transposed(a, blocked)}; },
          transposed_flops,
          [blocked](const KernelArgs& a, const Inputs& in) {
            const RefArray* bias = a.number("bias") ? &in[2] : nullptr;
            if (!blocked) return ref_conv_transpose(in[0], in[1], bias, options_of(a, 2));
            const RefArray x = ref_unblocked(in[0], a.number("c_in"));
            return ref_blocked(ref_conv_transpose(x, in[1], bias, options_of(a, 2)),
                               a.number("block"));
          }};
}

}  // namespace

std::vector<KernelEntry> conv_entries() {
  return {line_entry(false), line_entry(true), transposed_entry(false), transposed_entry(true)};
}

}  // namespace tenon
