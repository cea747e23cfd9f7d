#include "kernels/table.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cmath>

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/normalize.h"
#include "kernels/pool.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "kernels/table_parts.h"

namespace tenon {
namespace {

/// Of lists of numbers, so that sums and products of a few of them stay far from overflow.
constexpr int64_t kMostNumber = int64_t{1} << 31;

using Inputs = std::vector<RefArray>;
using Shape = std::vector<int64_t>;

double elements(const Shape& shape) {
  double count = 1;
  for (int64_t extent : shape) count *= static_cast<double>(extent);
  return count;
}

KernelEntry matmul_entry() {
  return {"matmul",
          "C[m,n] = A[m,k] B[k,n]",
          {number_arg("m", "rows of A"), number_arg("n", "columns of B"),
           number_arg("k", "columns of A")},
          {"A", "B"},
          [](const KernelArgs& a) {
            const int64_t m = a.number("m"), n = a.number("n"), k = a.number("k");
            return std::vector<Tensor>{matmul(a.tensor("A", {m, k}), a.tensor("B", {k, n}), "C")};
          },
          [](const KernelArgs& a) {
            return 2 * times(a, {"m", "n", "k"});
          },
          [](const KernelArgs&, const Inputs& in) { return ref_matmul(in[0], in[1]); }};
}

KernelEntry batch_matmul_entry() {
  return {
      "batch_matmul",
      "C[b,m,n] = A[b,m,k] B[b,k,n]",
      {number_arg("batch", "matrices"), number_arg("m", "rows of A"),
       number_arg("n", "columns of B"), number_arg("k", "columns of A")},
      {"A", "B"},
      [](const KernelArgs& a) {
        const int64_t b = a.number("batch"), m = a.number("m"), n = a.number("n"),
                      k = a.number("k");
        return std::vector<Tensor>{matmul(a.tensor("A", {b, m, k}), a.tensor("B", {b, k, n}), "C")};
      },
      [](const KernelArgs& a) {
        return 2 * times(a, {"batch", "m", "n", "k"});
      },
      [](const KernelArgs&, const Inputs& in) { return ref_matmul(in[0], in[1]); }};
}

KernelEntry gemm_entry() {
  return {"gemm",
          "Y[m,n] = A[m,k] B + C[n], B stored [k,n], or [n,k] with transpose_b=1",
          {number_arg("m", "rows of A"), number_arg("n", "columns of Y"),
           number_arg("k", "columns of A"), number_arg("transpose_b", "1: B is [n,k]", "1")},
          {"A", "B", "C"},
          [](const KernelArgs& a) {
            const int64_t m = a.number("m"), n = a.number("n"), k = a.number("k");
            const bool t = a.number("transpose_b") != 0;
            return std::vector<Tensor>{gemm(a.tensor("A", {m, k}),
                                            a.tensor("B", t ? Shape{n, k} : Shape{k, n}),
                                            a.tensor("C", {n}), {.transpose_b = t}, "Y")};
          },
          [](const KernelArgs& a) {
            return 2 * times(a, {"m", "n", "k"});
          },
          [](const KernelArgs& a, const Inputs& in) {
            RefArray y =
                ref_matmul(in[0], a.number("transpose_b") ? ref_transpose(in[1], {1, 0}) : in[1]);
            for (size_t n = 0; n < y.values.size(); ++n)
              y.values[n] += in[2].values[n % in[2].values.size()];
            return y;
          }};
}

ConvOptions square_conv(const KernelArgs& a) {
  const int64_t s = a.number("stride"), p = a.number("pad"), d = a.number("dilation");
  return {.strides = {s, s},
          .dilations = {d, d},
          .pads_begin = {p, p},
          .pads_end = {p, p},
          .groups = a.number("groups")};
}

int64_t conv_out(const KernelArgs& a, const std::string& extent) {
  return window_extent(a.number(extent), a.number("k"), a.number("stride"), a.number("dilation"),
                       2 * a.number("pad"));
}

/// c_in / groups; an uneven division is reported by the formula.
int64_t channels_each(const KernelArgs& a) { return a.number("c_in") / a.number("groups"); }

/// `layout`: what a blocked one takes besides.
std::vector<KernelArg> conv_args(std::vector<KernelArg> layout) {
  std::vector<KernelArg> args = {
      number_arg("n", "images", "1"),
      number_arg("c_in", "input channels", "", 1),
      number_arg("h", "height"),
      number_arg("w", "width"),
      number_arg("c_out", "output channels", "", 1),
      number_arg("k", "kernel's height and width", "", 1),
      number_arg("stride", "step of the window", "1", 1),
      number_arg("pad", "zeros at every side", "0"),
      number_arg("groups", "groups of channels; c_in: depthwise", "1", 1),
      number_arg("dilation", "distance of the taps", "1", 1),
      number_arg("bias", "1: with a bias", "1")};
  for (KernelArg& arg : layout) args.push_back(std::move(arg));
  return args;
}

Tensor conv_weights(const KernelArgs& a) {
  const int64_t k = a.number("k");
  return a.tensor("W", {a.number("c_out"), channels_each(a), k, k});
}

Tensor conv_bias(const KernelArgs& a) {
  return a.number("bias") ? a.tensor("B", {a.number("c_out")}) : Tensor();
}

double conv_flops(const KernelArgs& a) {
  return 2 * times(a, {"n", "c_out", "k", "k"}) *
         static_cast<double>(channels_each(a) * conv_out(a, "h") * conv_out(a, "w"));
}

KernelEntry conv2d_entry() {
  return {"conv2d",
          "Y[n,c_out,oh,ow] = X[n,c_in,h,w] * W[c_out,c_in/groups,k,k] + B[c_out]",
          conv_args({}),
          {"X", "W", "B"},
          [](const KernelArgs& a) {
            const Tensor x =
                a.tensor("X", {a.number("n"), a.number("c_in"), a.number("h"), a.number("w")});
            const Tensor w = conv_weights(a);
            return std::vector<Tensor>{conv(x, w, conv_bias(a), square_conv(a), "Y")};
          },
          conv_flops,
          [](const KernelArgs& a, const Inputs& in) {
            return ref_conv(in[0], in[1], a.number("bias") ? &in[2] : nullptr, square_conv(a));
          }};
}

int64_t blocks(int64_t channels, int64_t block) { return (channels + block - 1) / block; }

KernelEntry conv2d_blocked_entry() {
  return {
      "conv2d_blocked",
      "conv2d on channels in blocks: X[n,c_in/block,h,w,block] -> Y[n,c_out/block,oh,ow,block]",
      conv_args({number_arg("block", "channels in a block", "16", 1),
                 word_arg("input", "plain: X is [n,c_in,h,w]", "blocked", {"blocked", "plain"})}),
      {"X", "W", "B"},
      [](const KernelArgs& a) {
        const int64_t n = a.number("n"), c = a.number("c_in"), h = a.number("h"), w = a.number("w"),
                      block = a.number("block");
        const bool plain = a.word("input") == "plain";
        const Tensor x =
            a.tensor("X", plain ? Shape{n, c, h, w} : Shape{n, blocks(c, block), h, w, block});
        const Tensor weights = conv_weights(a);
        return std::vector<Tensor>{
            conv2d_blocked(x, weights, conv_bias(a), square_conv(a), block, "Y")};
      },
      conv_flops,
      [](const KernelArgs& a, const Inputs& in) {
        const RefArray x =
            a.word("input") == "plain" ? in[0] : ref_unblocked(in[0], a.number("c_in"));
        return ref_blocked(ref_conv(x, in[1], a.number("bias") ? &in[2] : nullptr, square_conv(a)),
                           a.number("block"));
      }};
}

/// The lanes of blocks are a third dimension, over which no window slides.
PoolOptions square_pool(const KernelArgs& a) {
  const int64_t k = a.number("k"), s = a.number("stride"), p = a.number("pad");
  if (a.number("block") > 0)
    return {
        .kernel = {k, k, 1}, .strides = {s, s, 1}, .pads_begin = {p, p, 0}, .pads_end = {p, p, 0}};
  return {.kernel = {k, k}, .strides = {s, s}, .pads_begin = {p, p}, .pads_end = {p, p}};
}

Shape pooled_shape(const KernelArgs& a) {
  const int64_t n = a.number("n"), c = a.number("c"), h = a.number("h"), w = a.number("w"),
                block = a.number("block");
  return block > 0 ? Shape{n, blocks(c, block), h, w, block} : Shape{n, c, h, w};
}

KernelEntry pool_entry() {
  return {
      "pool",
      "max or average over k x k windows of X[n,c,h,w]",
      {word_arg("op", "max or avg", "max", {"max", "avg"}), number_arg("n", "images", "1"),
       number_arg("c", "channels"), number_arg("h", "height"), number_arg("w", "width"),
       number_arg("k", "window's height and width", "", 1),
       number_arg("stride", "step of the window", "1", 1),
       number_arg("pad", "padding at every side", "0"),
       number_arg("block", "channels in a block of X[n,c/block,h,w,block]; 0: X is plain", "0")},
      {"X"},
      [](const KernelArgs& a) {
        const Tensor x = a.tensor("X", pooled_shape(a));
        return std::vector<Tensor>{a.word("op") == "max" ? max_pool(x, square_pool(a), "Y")
                                                         : average_pool(x, square_pool(a), "Y")};
      },
      [](const KernelArgs& a) {
        const int64_t k = a.number("k"), s = a.number("stride"), p = a.number("pad");
        return times(a, {"n", "c", "k", "k"}) *
               static_cast<double>(window_extent(a.number("h"), k, s, 1, 2 * p) *
                                   window_extent(a.number("w"), k, s, 1, 2 * p));
      },
      [](const KernelArgs& a, const Inputs& in) {
        return ref_pool(a.word("op"), in[0], square_pool(a));
      }};
}

KernelEntry global_pool_entry() {
  return {"global_pool",
          "max or average over all of each channel of X[n,c,h,w]",
          {word_arg("op", "max or avg", "avg", {"max", "avg"}), number_arg("n", "images", "1"),
           number_arg("c", "channels"), number_arg("h", "height", "", 1),
           number_arg("w", "width", "", 1)},
          {"X"},
          [](const KernelArgs& a) {
            const Tensor x =
                a.tensor("X", {a.number("n"), a.number("c"), a.number("h"), a.number("w")});
            return std::vector<Tensor>{a.word("op") == "max" ? global_max_pool(x, "Y")
                                                             : global_average_pool(x, "Y")};
          },
          [](const KernelArgs& a) {
            return times(a, {"n", "c", "h", "w"});
          },
          [](const KernelArgs& a, const Inputs& in) {
            return ref_pool(a.word("op"), in[0], {.kernel = {a.number("h"), a.number("w")}});
          }};
}

KernelEntry softmax_entry(bool logarithm) {
  return {logarithm ? "log_softmax" : "softmax",
          logarithm ? "logarithm of the softmax of each row" : "exp(x) / sum(exp(x)) of each row",
          {number_arg("rows", "rows of X"), number_arg("columns", "columns of X")},
          {"X"},
          [logarithm](const KernelArgs& a) {
            const Tensor x = a.tensor("X", {a.number("rows"), a.number("columns")});
            return std::vector<Tensor>{logarithm ? log_softmax(x, 1, "Y") : softmax(x, 1, "Y")};
          },
          [](const KernelArgs& a) {
            return 5 * times(a, {"rows", "columns"});
          },
          [logarithm](const KernelArgs&, const Inputs& in) {
            return ref_softmax(in[0], 1, logarithm);
          }};
}

double attention_scale(const KernelArgs& a) {
  return 1 / std::sqrt(static_cast<double>(a.number("d")));
}

KernelEntry attention_entry() {
  return {
      "attention",
      "Y[heads,q,d] = softmax(Q[heads,q,d] K^T / sqrt(d) + M) V, K and V [heads,kv,d]",
      {number_arg("heads", "matrices"), number_arg("q", "queries"),
       number_arg("kv", "keys and values", "", 1), number_arg("d", "elements of each", "", 1),
       word_arg("mask", "causal: later keys are not seen; add: M[q,kv] is added", "none",
                {"none", "causal", "add"}),
       word_arg("keys", "columns: K is [heads,d,kv]", "rows", {"rows", "columns"}),
       number_arg("tile", "keys at a time; 0: all unless they are many", "0")},
      {"Q", "K", "V", "M"},
      [](const KernelArgs& a) {
        const int64_t h = a.number("heads"), q = a.number("q"), kv = a.number("kv"),
                      d = a.number("d");
        const bool columns = a.word("keys") == "columns";
        const Tensor mask = a.word("mask") == "add" ? a.tensor("M", {q, kv}) : Tensor();
        return std::vector<Tensor>{attention(
            a.tensor("Q", {h, q, d}), a.tensor("K", columns ? Shape{h, d, kv} : Shape{h, kv, d}),
            a.tensor("V", {h, kv, d}), mask,
            {.causal = a.word("mask") == "causal",
             .keys_as_columns = columns,
             .tile = a.number("tile")},
            "Y")};
      },
      [](const KernelArgs& a) {
        return 4 * times(a, {"heads", "q", "kv", "d"});
      },
      [](const KernelArgs& a, const Inputs& in) {
        // The program's order of first use: Q, K, M, V.
        const bool added = a.word("mask") == "add";
        return ref_attention(in[0],
                             a.word("keys") == "columns" ? ref_transpose(in[1], {0, 2, 1}) : in[1],
                             in[added ? 3 : 2], added ? &in[2] : nullptr, attention_scale(a),
                             a.word("mask") == "causal");
      }};
}

KernelEntry layer_norm_entry() {
  return {"layer_norm",
          "each row of X minus its mean, over its deviation, times S plus B",
          {number_arg("rows", "rows of X"), number_arg("columns", "columns of X", "", 1)},
          {"X", "S", "B"},
          [](const KernelArgs& a) {
            const int64_t columns = a.number("columns");
            return std::vector<Tensor>{layer_norm(a.tensor("X", {a.number("rows"), columns}),
                                                  a.tensor("S", {columns}),
                                                  a.tensor("B", {columns}), 1, 1e-5, "Y")
                                           .result};
          },
          [](const KernelArgs& a) {
            return 8 * times(a, {"rows", "columns"});
          },
          [](const KernelArgs&, const Inputs& in) {
            return ref_layer_norm(in[0], in[1], in[2], 1e-5);
          }};
}

KernelEntry batch_norm_entry() {
  return {"batch_norm",
          "each channel of X[n,c,h,w] normalised by given mean M and variance V, times S plus B",
          {number_arg("n", "images", "1"), number_arg("c", "channels"), number_arg("h", "height"),
           number_arg("w", "width")},
          {"X", "S", "V", "B", "M"},
          [](const KernelArgs& a) {
            const int64_t c = a.number("c");
            return std::vector<Tensor>{batch_norm(
                a.tensor("X", {a.number("n"), c, a.number("h"), a.number("w")}), a.tensor("S", {c}),
                a.tensor("B", {c}), a.tensor("M", {c}), a.tensor("V", {c}), 1e-5, "Y")};
          },
          [](const KernelArgs& a) {
            return 2 * times(a, {"n", "c", "h", "w"});
          },
          [](const KernelArgs&, const Inputs& in) {
            return ref_batch_norm(in[0], in[1], in[3], in[4], in[2], 1e-5);
          }};
}

Shape reduced_axes(const KernelArgs& a) {
  Shape axes;
  if (a.word("axis") == "all") {
    for (size_t d = 0; d < a.shape("shape").size(); ++d) axes.push_back(static_cast<int64_t>(d));
    return axes;
  }
  return number_list(a, "reduce", "axis", "axis=0, axis=1,2 or axis=all");
}

KernelEntry reduce_entry() {
  return {"reduce",
          "combines the elements of X along axes",
          {word_arg("op", "how they are combined", "sum", reduce_names()),
           shape_arg("shape", "of X, as 64x56x56"),
           word_arg("axis", "all, or axes joined by commas", "all", {})},
          {"X"},
          [](const KernelArgs& a) {
            return std::vector<Tensor>{
                reduce(a.word("op"), a.tensor("X", a.shape("shape")), reduced_axes(a), false, "Y")};
          },
          [](const KernelArgs& a) { return elements(a.shape("shape")); },
          [](const KernelArgs& a, const Inputs& in) {
            return ref_reduce(a.word("op"), in[0], reduced_axes(a), false);
          }};
}

/// Operators with one operand, with two, and the chain add_relu of the benchmarks.
std::vector<std::string> map_words() {
  std::vector<std::string> words = unary_names();
  words.insert(words.end(), binary_names().begin(), binary_names().end());
  words.push_back("add_relu");
  return words;
}

bool is_unary(const std::string& op) {
  for (const std::string& name : unary_names())
    if (name == op) return true;
  return false;
}

KernelEntry elementwise_entry() {
  return {"elementwise",
          "an operator on every element of X (and Y)",
          {word_arg("op", "the operator", "", map_words()), number_arg("n", "elements")},
          {"X", "Y"},
          [](const KernelArgs& a) {
            const std::string& op = a.word("op");
            const Tensor x = a.tensor("X", {a.number("n")});
            if (is_unary(op)) return std::vector<Tensor>{unary(op, x, {}, "Z")};
            const Tensor y = a.tensor("Y", {a.number("n")});
            if (op != "add_relu") return std::vector<Tensor>{binary(op, x, y, {}, "Z")};
            return std::vector<Tensor>{unary("relu", binary("add", x, y, {}, "sum"), {}, "Z")};
          },
          [](const KernelArgs& a) { return static_cast<double>(a.number("n")); },
          [](const KernelArgs& a, const Inputs& in) {
            RefArray z = in[0];
            const std::string& op = a.word("op");
            for (size_t n = 0; n < z.values.size(); ++n) {
              if (is_unary(op))
                z.values[n] = ref_unary(op, in[0].values[n]);
              else if (op == "add_relu")
                z.values[n] = ref_unary("relu", in[0].values[n] + in[1].values[n]);
              else
                z.values[n] = ref_binary(op, in[0].values[n], in[1].values[n], is_float(a.type()));
            }
            return z;
          }};
}

std::vector<KernelEntry> whole_table() {
  std::vector<KernelEntry> table = {
      matmul_entry(),         batch_matmul_entry(), gemm_entry(),        conv2d_entry(),
      conv2d_blocked_entry(), pool_entry(),         global_pool_entry(), softmax_entry(false),
      softmax_entry(true),    attention_entry(),    layer_norm_entry(),  batch_norm_entry(),
      reduce_entry(),         elementwise_entry()};
  for (auto* more : {conv_entries, wide_entries, winograd_entries, mover_entries})
    for (KernelEntry& entry : more()) table.push_back(std::move(entry));
  return table;
}

}  // namespace

double times(const KernelArgs& args, const std::vector<std::string>& names) {
  double count = 1;
  for (const std::string& name : names) count *= static_cast<double>(args.number(name));
  return count;
}

KernelArg number_arg(std::string name, std::string help, std::string standard, int64_t low) {
  return {std::move(name), KernelArg::Kind::number, std::move(standard), std::move(help), low, {}};
}

KernelArg shape_arg(std::string name, std::string help) {
  return {std::move(name), KernelArg::Kind::shape, "", std::move(help), 0, {}};
}

KernelArg word_arg(std::string name, std::string help, std::string standard,
                   std::vector<std::string> words) {
  return {std::move(name), KernelArg::Kind::word, std::move(standard), std::move(help), 0,
          std::move(words)};
}

std::vector<int64_t> number_list(const KernelArgs& args, const std::string& kernel,
                                 const std::string& name, const std::string& example) {
  std::vector<int64_t> numbers;
  for (const std::string& part : split_text(args.word(name), ',')) {
    const auto number = parse_int(part);
    if (!number)
      throw UserError(fmt::format("{}: {}={}: \"{}\" is not a whole number\n  try: {}", kernel,
                                  name, args.word(name), part, example));
    if (*number > kMostNumber || *number < -kMostNumber)
      throw UserError(fmt::format("{}: {}={}: {} is too large; at most {}", kernel, name,
                                  args.word(name), *number, kMostNumber));
    numbers.push_back(*number);
  }
  return numbers;
}

const std::vector<KernelEntry>& kernel_table() {
  static const std::vector<KernelEntry> table = whole_table();
  return table;
}

const KernelEntry& find_kernel(const std::string& name) {
  std::vector<std::string> names;
  for (const KernelEntry& entry : kernel_table()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  const auto near = nearest_names(name, names);
  throw UserError(
      fmt::format("unknown operator \"{}\"{}\n  there are: {}\n  try: tenon kernels; a network is "
                  "a file NAME.onnx",
                  name, near.empty() ? "" : "; did you mean " + join(near), join(names)));
}

KernelArgs parse_kernel_args(const KernelEntry& entry, const std::vector<std::string>& words) {
  return parse_kernel_args(entry.name, entry.args, entry.inputs, words);
}

}  // namespace tenon
