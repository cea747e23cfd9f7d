#include "kernels/conv.h"
#include "kernels/matmul.h"
#include "kernels/table_parts.h"
#include "schedule/composites/cost.h"

namespace tenon {
namespace {

using Inputs = std::vector<RefArray>;

/// The type of the second factor; bytes are often multiplied with bytes of the other sign.
KernelArg other_type() {
  return word_arg("other", "element type of the second input", "same",
                  {"same", "u8", "i8", "bf16", "f16", "f32"});
}

Tensor other_tensor(const KernelArgs& a, const std::string& name,
                    const std::vector<int64_t>& shape) {
  const std::string& word = a.word("other");
  return a.tensor(name, word == "same" ? a.type() : *parse_dtype(word), shape);
}

KernelEntry matmul_wide_entry() {
  return {"matmul_wide",
          "matmul of narrow numbers with wide sums: bytes in i32, bf16 and f16 in f32",
          {number_arg("m", "rows of A"), number_arg("n", "columns of B"),
           number_arg("k", "columns of A"), other_type()},
          {"A", "B"},
          [](const KernelArgs& a) {
            const int64_t m = a.number("m"), n = a.number("n"), k = a.number("k");
            const Tensor x = a.tensor("A", {m, k});
            return std::vector<Tensor>{matmul_wide(x, other_tensor(a, "B", {k, n}), "C")};
          },
          [](const KernelArgs& a) {
            return 2 * times(a, {"m", "n", "k"});
          },
          [](const KernelArgs&, const Inputs& in) { return ref_matmul(in[0], in[1]); }};
}

ConvOptions window(const KernelArgs& a) {
  const int64_t s = a.number("stride"), p = a.number("pad"), d = a.number("dilation");
  return {.strides = {s, s}, .dilations = {d, d}, .pads_begin = {p, p}, .pads_end = {p, p}};
}

int64_t places(const KernelArgs& a, const char* extent) {
  return window_extent(a.number(extent), a.number("k"), a.number("stride"), a.number("dilation"),
                       2 * a.number("pad"));
}

Tensor wide_conv(const KernelArgs& a) {
  const int64_t c = a.number("c_in"), block = a.number("block"), k = a.number("k");
  const Tensor x =
      a.tensor("X", {a.number("n"), ceil_div(c, block), a.number("h"), a.number("w"), block});
  return conv2d_wide(x, other_tensor(a, "W", {a.number("c_out"), c, k, k}), window(a), block, "Y");
}

KernelEntry conv2d_wide_entry() {
  return {"conv2d_wide",
          "conv2d of narrow numbers with wide sums: X[n,c_in/block,h,w,block] -> "
          "Y[n,c_out/block,oh,ow,block], bytes in i32, bf16 and f16 in f32",
          {number_arg("n", "images", "1"), number_arg("c_in", "input channels", "", 1),
           number_arg("h", "height"), number_arg("w", "width"),
           number_arg("c_out", "output channels", "", 1),
           number_arg("k", "kernel's height and width", "", 1),
           number_arg("stride", "step of the window", "1", 1),
           number_arg("pad", "zeros at every side", "0"),
           number_arg("dilation", "distance of the taps", "1", 1),
           number_arg("block", "channels in a block", "64", 1), other_type()},
          {"X", "W"},
          [](const KernelArgs& a) { return std::vector<Tensor>{wide_conv(a)}; },
          [](const KernelArgs& a) {
            return 2 * times(a, {"n", "c_in", "c_out", "k", "k"}) *
                   static_cast<double>(places(a, "h") * places(a, "w"));
          },
          [](const KernelArgs& a, const Inputs& in) {
            const RefArray x = ref_unblocked(in[0], a.number("c_in"));
            return ref_blocked(ref_conv(x, in[1], nullptr, window(a)), a.number("block"));
          }};
}

}  // namespace

std::vector<KernelEntry> wide_entries() { return {matmul_wide_entry(), conv2d_wide_entry()}; }

}  // namespace tenon
