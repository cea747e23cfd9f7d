#include "kernels/table_parts.h"
#include "kernels/winograd.h"
#include "schedule/composites/cost.h"

namespace tenon {
namespace {

using Inputs = std::vector<RefArray>;

double number(const KernelArgs& a, const char* name) { return static_cast<double>(a.number(name)); }

KernelEntry weights_entry() {
  return {
      "winograd_weights",
      "U of conv2d_winograd: G W[c_out,c_in,3,3] G', [t,t,c_out/block,c_in,block], t = tile+2",
      {number_arg("c_in", "input channels", "", 1), number_arg("c_out", "output channels", "", 1),
       number_arg("tile", "pixels of a tile's side, 2 or 4", "4"),
       number_arg("block", "channels in a block", "16", 1)},
      {"W"},
      [](const KernelArgs& a) {
        const Tensor w = a.tensor("W", {a.number("c_out"), a.number("c_in"), 3, 3});
        return std::vector<Tensor>{winograd_weights(w, a.number("tile"), a.number("block"), "U")};
      },
      [](const KernelArgs& a) {
        const double t = number(a, "tile") + 2;
        return number(a, "c_in") * number(a, "c_out") * 6 * (3 * t + t * t);
      },
      [](const KernelArgs& a, const Inputs& in) {
        return ref_winograd_weights(in[0], a.number("tile"), a.number("block"));
      }};
}

/// The flops are those of the direct sum, so that figures compare with conv2d's.
double conv_flops(const KernelArgs& a) {
  const auto out = [&](const char* extent) {
    return static_cast<double>(window_extent(a.number(extent), 3, 1, 1, 2 * a.number("pad")));
  };
  return 18 * number(a, "n") * number(a, "c_out") * number(a, "c_in") * out("h") * out("w");
}

Tensor build_conv(const KernelArgs& a) {
  const int64_t c_in = a.number("c_in"), c_out = a.number("c_out"), block = a.number("block"),
                t = a.number("tile") + 2, pad = a.number("pad");
  const Tensor x =
      a.tensor("X", {a.number("n"), ceil_div(c_in, block), a.number("h"), a.number("w"), block});
  const Tensor u = a.tensor("U", {t, t, ceil_div(c_out, block), c_in, block});
  const Tensor bias = a.number("bias") ? a.tensor("B", {c_out}) : Tensor();
  return conv2d_winograd(x, u, bias, {.pads_begin = {pad, pad}, .pads_end = {pad, pad}}, c_out,
                         "Y");
}

KernelEntry conv_entry() {
  return {
      "conv2d_winograd",
      "conv2d_blocked of 3x3 at stride 1 by F(tile x tile, 3x3); U made by winograd_weights",
      {number_arg("n", "images", "1"), number_arg("c_in", "input channels", "", 1),
       number_arg("h", "height"), number_arg("w", "width"),
       number_arg("c_out", "output channels", "", 1), number_arg("pad", "zeros at every side", "1"),
       number_arg("tile", "pixels of a tile's side, 2 or 4", "4"),
       number_arg("bias", "1: with a bias", "1"),
       number_arg("block", "channels in a block", "16", 1)},
      {"X", "U", "B"},
      [](const KernelArgs& a) { return std::vector<Tensor>{build_conv(a)}; },
      conv_flops,
      [](const KernelArgs& a, const Inputs& in) {
        const RefArray* bias = a.number("bias") ? &in[2] : nullptr;
        return ref_winograd(in[0], in[1], bias, a.number("pad"), a.number("c_out"));
      }};
}

}  // namespace

std::vector<KernelEntry> winograd_entries() { return {weights_entry(), conv_entry()}; }

}  // namespace tenon
