#include <fmt/format.h>
#include <tenon/ir/visit.h>
#include <tenon/support/text.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/movers.h"
#include "kernels/normalize.h"
#include "kernels/pad.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "kernels/table.h"
#include "run_kernel.h"

using namespace tenon;
using Dims = std::vector<int64_t>;
using Words = std::vector<std::string>;

namespace {

/// Interpreter, machine code and plain loops on one unscheduled program.
void check(const Program& program, const std::vector<RefArray>& inputs, const RefArray& expected,
           double bound) {
  INFO(print(program));
  if (program_points(program) < 1e6)
    CHECK(difference(run_interpreted(program, inputs), expected, bound) == "");
  CHECK(difference(run_compiled(program, inputs), expected, bound) == "");
}

void check_entry(const std::string& name, const Words& words, double bound = 1e-4) {
  const KernelEntry& entry = find_kernel(name);
  const KernelArgs args = parse_kernel_args(entry, words);
  INFO(name << " " << args.to_json());
  const Program program = make_program(name, entry.build(args));
  auto inputs = random_inputs(program, 3);
  if (name == "batch_norm")
    for (double& variance : inputs[2].values) variance = std::fabs(variance);
  check(program, inputs, entry.reference(args, inputs), bound);
}

Words matrix(int64_t m, int64_t n, int64_t k) {
  return {fmt::format("m={}", m), fmt::format("n={}", n), fmt::format("k={}", k)};
}

/// One tensor's formula against values computed here.
void check_tensor(const Tensor& t, const std::vector<RefArray>& inputs, const RefArray& expected,
                  double bound = 1e-5) {
  check(make_program("p", {t}), inputs, expected, bound);
}

/// Of "shape=7x130".
int64_t elements_of(const std::string& word) {
  int64_t count = 1;
  for (const std::string& part : split_text(word.substr(word.find('=') + 1), 'x'))
    count *= parse_int(part).value();
  return count;
}

RefArray counting(Dims shape) {
  RefArray a(std::move(shape));
  for (size_t n = 0; n < a.values.size(); ++n) a.values[n] = static_cast<double>(n);
  return a;
}

}  // namespace

TEST_CASE("products over odd shapes") {
  const Dims odd = {1, 7, 17, 37};
  for (int64_t m : odd)
    for (int64_t n : {int64_t{1}, int64_t{17}, int64_t{130}})
      check_entry("matmul", matrix(m, n, 37));
  check_entry("matmul", matrix(130, 7, 17));
  for (const Dims& s : {Dims{0, 5, 3}, Dims{5, 0, 3}, Dims{5, 7, 0}})
    check_entry("matmul", matrix(s[0], s[1], s[2]));
  check_entry("batch_matmul", {"batch=3", "m=7", "n=17", "k=5"});
  check_entry("gemm", {"m=7", "n=17", "k=37"});
  check_entry("gemm", {"m=7", "n=17", "k=37", "transpose_b=0"});
}

TEST_CASE("products in other types") {
  for (const char* type : {"f64", "i32", "i64", "i8", "u8"}) {
    Words words = matrix(7, 17, 5);
    words.push_back(std::string("type=") + type);
    const bool narrow = std::string(type) == "i8" || std::string(type) == "u8";
    if (!narrow) check_entry("matmul", words, 1e-12);
  }
  for (const char* type : {"f16", "bf16"}) {
    Words words = matrix(7, 17, 5);
    words.push_back(std::string("type=") + type);
    check_entry("matmul", words, type == std::string("f16") ? 2e-3 : 2e-2);
  }
}

TEST_CASE("convolutions over odd shapes, strides, groups") {
  auto conv = [](Words words) { check_entry("conv2d", words); };
  conv({"c_in=3", "h=7", "w=17", "c_out=5", "k=3", "pad=1"});
  conv({"c_in=3", "h=17", "w=7", "c_out=4", "k=3", "stride=2", "pad=1"});
  conv({"c_in=4", "h=9", "w=9", "c_out=6", "k=3", "groups=2", "dilation=2", "bias=0"});
  conv({"c_in=7", "h=7", "w=17", "c_out=7", "k=3", "pad=1", "groups=7"});
  conv({"c_in=7", "h=8", "w=17", "c_out=14", "k=5", "pad=2", "stride=2", "groups=7"});
  conv({"n=2", "c_in=17", "h=5", "w=7", "c_out=37", "k=1"});
  conv({"c_in=1", "h=5", "w=7", "c_out=1", "k=1", "bias=0"});
  conv({"c_in=2", "h=2", "w=2", "c_out=3", "k=5"});
  conv({"n=0", "c_in=2", "h=4", "w=4", "c_out=3", "k=3"});
}

TEST_CASE("convolutions on channels in blocks over odd shapes, strides, groups") {
  auto conv = [](Words words) { check_entry("conv2d_blocked", words); };
  conv({"c_in=20", "h=7", "w=17", "c_out=35", "k=3", "pad=1"});
  conv({"c_in=3", "h=17", "w=7", "c_out=4", "k=3", "stride=2", "pad=1"});
  conv({"c_in=3", "h=17", "w=9", "c_out=20", "k=7", "stride=2", "pad=3", "input=plain"});
  conv({"c_in=4", "h=9", "w=9", "c_out=6", "k=3", "groups=2", "dilation=2", "bias=0", "block=4"});
  conv({"c_in=8", "h=9", "w=9", "c_out=16", "k=3", "groups=2", "pad=2", "dilation=2", "block=4"});
  conv({"c_in=21", "h=7", "w=17", "c_out=21", "k=3", "pad=1", "groups=21"});
  conv({"c_in=7", "h=8", "w=17", "c_out=14", "k=5", "pad=2", "stride=2", "groups=7", "block=4"});
  conv({"n=2", "c_in=17", "h=5", "w=7", "c_out=37", "k=1"});
  conv({"c_in=1", "h=5", "w=7", "c_out=1", "k=1", "bias=0"});
  conv({"c_in=6", "h=5", "w=7", "c_out=6", "k=1", "groups=6", "bias=0", "block=4"});
  conv({"c_in=6", "h=5", "w=7", "c_out=6", "k=1", "groups=6", "pad=1", "block=4"});
  conv({"c_in=2", "h=2", "w=2", "c_out=3", "k=5"});
  conv({"n=0", "c_in=2", "h=4", "w=4", "c_out=3", "k=3"});
  const Tensor w = input("w", f32, {8, 20, 3, 3});
  CHECK_THROWS_WITH(
      conv2d_blocked(input("x", f32, {1, 1, 5, 5, 16}), w, Tensor(), {}, 16),
      Catch::Contains("does not hold 20 channels: [n, 2, h, w, 16] does, or [n, 20, h, w]"));
  CHECK_THROWS_WITH(conv2d_blocked(input("x", f32, {1, 2, 5, 5, 16}), w, Tensor(), {}, 0),
                    Catch::Contains("a block of 0 channels"));
}

TEST_CASE("convolutions over one dimension, plain and on channels in blocks") {
  for (const char* kernel : {"conv1d", "conv1d_blocked"}) {
    check_entry(kernel, {"c_in=20", "w=37", "c_out=35", "k=3", "pad=1"});
    check_entry(kernel, {"n=2", "c_in=16", "w=21", "c_out=17", "k=5", "stride=2", "bias=0"});
    check_entry(kernel, {"c_in=1", "w=9", "c_out=1", "k=1"});
    check_entry(kernel, {"c_in=3", "w=2", "c_out=4", "k=5"});
  }
  CHECK_THROWS_WITH(
      conv1d_blocked(input("x", f32, {1, 1, 5, 16}), input("w", f32, {8, 20, 3}), Tensor(), {}, 16),
      Catch::Contains("does not hold 20 channels: [n, 2, w, 16] does, or [n, 20, w]"));
}

TEST_CASE("transposed convolutions, plain and on channels in blocks") {
  for (const char* kernel : {"conv2d_transpose", "conv2d_transpose_blocked"}) {
    const auto conv = [&](Words words) { check_entry(kernel, words); };
    conv({"c_in=20", "h=5", "w=9", "c_out=35", "k=4", "stride=2", "pad=1"});
    conv({"n=2", "c_in=16", "h=4", "w=3", "c_out=17", "k=3", "stride=2", "pad=1", "bias=0"});
    conv({"c_in=5", "h=4", "w=5", "c_out=7", "k=3", "pad=1"});
    conv({"c_in=17", "h=3", "w=4", "c_out=16", "k=2", "stride=3"});  // pixels that no input reaches
    conv({"c_in=4", "h=3", "w=2", "c_out=3", "k=5", "stride=3", "pad=2"});
    conv({"c_in=2", "h=1", "w=1", "c_out=2", "k=1", "stride=2"});
  }
  // An output padding only adds pixels at the end.
  const Tensor x = input("x", f32, {1, 2, 4, 5, 16}), w = input("w", f32, {20, 8, 3, 3});
  const Tensor y = conv2d_transpose_blocked(
      x, w, Tensor(), {.strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}}, {1, 1}, 16);
  CHECK(y.extents() == std::vector<int64_t>{1, 1, 8, 10, 16});
  CHECK_THROWS_WITH(conv2d_transpose_blocked(x, w, Tensor(), {.groups = 2}, {}, 16),
                    Catch::Contains("dilations and groups are 1"));
  CHECK_THROWS_WITH(conv2d_transpose_blocked(x, w, Tensor(), {.strides = {0, 1}}, {}, 16),
                    Catch::Contains("strides must be at least 1; there is 0"));
  CHECK_THROWS_WITH(
      conv2d_transpose_blocked(x, input("w", f32, {40, 8, 3, 3}), Tensor(), {}, {}, 16),
      Catch::Contains("does not hold 40 channels: [n, 3, h, w, 16] does"));
  CHECK_THROWS_WITH(conv2d_transpose_blocked(x, w, input("b", f32, {7}), {}, {}, 16),
                    Catch::Contains("\"b\" has 7 elements; there are 8 output channels"));
}

TEST_CASE("channels go into blocks and come out of them") {
  for (const char* kernel : {"block_channels", "unblock_channels"}) {
    check_entry(kernel, {"n=2", "c=37", "h=5", "w=7"});
    check_entry(kernel, {"c=8", "h=1", "w=3", "block=4"});
    check_entry(kernel, {"c=3", "h=4", "w=5", "block=8"});
    check_entry(kernel, {"n=0", "c=3", "h=4", "w=5"});
  }
  CHECK_THROWS_WITH(unblock_channels(input("x", f32, {1, 2, 3, 3, 4}), 9),
                    Catch::Contains("9 channels of \"x\", which holds 8"));
  CHECK_THROWS_WITH(block_channels(input("x", f32, {1, 2, 3, 3}), 0),
                    Catch::Contains("a block of 0 channels"));
}

TEST_CASE("pools over odd shapes") {
  for (const char* op : {"op=max", "op=avg"}) {
    check_entry("pool", {op, "c=3", "h=17", "w=37", "k=3", "stride=2", "pad=1"});
    check_entry("pool", {op, "c=7", "h=7", "w=7", "k=7"});
    check_entry("pool", {op, "c=1", "h=5", "w=1", "k=1", "stride=3"});
    for (const char* c : {"c=0", "c=1", "c=17", "c=130"})
      check_entry("global_pool", {op, "n=2", c, "h=7", "w=17"});
    check_entry("global_pool", {op, "n=1", "c=7", "h=1", "w=1"});
    check_entry("global_pool", {op, "n=0", "c=7", "h=37", "w=1"});
  }
  RefArray x({1, 2, 7, 9});
  for (size_t n = 0; n < x.values.size(); ++n) x.values[n] = std::sin(static_cast<double>(n));
  PoolOptions o{.kernel = {3, 2},
                .strides = {2, 3},
                .dilations = {1, 2},
                .pads_begin = {1, 0},
                .pads_end = {0, 1},
                .ceil_mode = true};
  Tensor t = input("x", f32, x.shape);
  check_tensor(max_pool(t, o), {x}, ref_pool("max", x, o));
  for (bool include : {false, true}) {
    o.count_include_pad = include;
    check_tensor(average_pool(t, o), {x}, ref_pool("average", x, o));
  }
}

TEST_CASE("rows: softmax, layer norm, batch norm") {
  for (const char* name : {"softmax", "log_softmax", "layer_norm"})
    for (const auto& [rows, columns] : {std::pair{1, 1}, {7, 17}, {37, 130}, {3, 64}, {17, 1000}})
      check_entry(name, {fmt::format("rows={}", rows), fmt::format("columns={}", columns)});
  check_entry("softmax", {"rows=0", "columns=4"});
  check_entry("softmax", {"rows=4", "columns=0"});
  check_entry("batch_norm", {"c=7", "h=5", "w=17"});
  Tensor x = input("x", f32, {3, 7, 5});
  const Program p = make_program("p", {softmax(x, 1)});
  const auto in = random_inputs(p, 5);
  check(p, in, ref_softmax(in[0], 1, false), 1e-5);
}

TEST_CASE("attention over odd shapes") {
  for (const char* mask : {"mask=none", "mask=causal", "mask=add"})
    for (const char* keys : {"keys=rows", "keys=columns"}) {
      check_entry("attention", {"heads=2", "q=5", "kv=7", "d=4", mask, keys}, 1e-5);
      check_entry("attention", {"heads=1", "q=1", "kv=130", "d=17", mask, keys}, 1e-5);
    }
  for (const char* tile : {"tile=3", "tile=7", "tile=1", "tile=100"})
    check_entry("attention", {"heads=2", "q=5", "kv=7", "d=4", tile}, 1e-5);
  check_entry("attention", {"heads=0", "q=5", "kv=7", "d=4"});
  check_entry("attention", {"heads=2", "q=3", "kv=17", "d=5", "type=f64"}, 1e-12);
  check_entry("attention", {"heads=2", "q=3", "kv=17", "d=5", "type=f16"}, 2e-3);
}

TEST_CASE("reductions along any axes") {
  for (const std::string& op : reduce_names()) {
    if (op == "any" || op == "all" || op == "log_sum") continue;
    for (const char* axis : {"axis=all", "axis=0", "axis=1", "axis=-1,0"}) {
      if (op == "prod") {
        check_entry("reduce", {"op=" + op, "shape=3x7x17", axis}, 1e-4);
      } else {
        check_entry("reduce", {"op=" + op, "shape=7x17x130", axis}, 1e-3);
      }
    }
  }
  for (const char* op : {"op=sum", "op=prod", "op=max", "op=min"})
    check_entry("reduce", {op, "shape=0x5", "axis=0"});
  check_entry("reduce", {"shape=40000", "axis=all"}, 1e-3);
  for (const char* op : {"op=sum", "op=mean", "op=max"})
    check_entry("reduce", {op, "shape=7x17", "axis=1", "type=i32"},
                op == std::string("op=mean") ? 1.0 : 0.0);
  Tensor x = input("x", f32, {4, 9});
  RefArray v({4, 9}, std::vector<double>(36, 0.0));
  for (size_t n = 0; n < 36; ++n) v.values[n] = static_cast<double>((n * 7) % 5);
  for (bool maximum : {true, false})
    for (int64_t axis : {0, 1})
      check_tensor(arg_reduce(maximum, x, axis, false, false), {v}, ref_arg(maximum, v, axis));
  check_tensor(cumulative_sum(x, 1, true, false), {RefArray({4, 9}, std::vector<double>(36, 1.0))},
               [] {
                 RefArray y({4, 9});
                 for (size_t n = 0; n < 36; ++n) y.values[n] = static_cast<double>(n % 9);
                 return y;
               }());
}

TEST_CASE("every element-wise operator") {
  for (const std::string& op : unary_names()) {
    if (op == "not" || op == "bit_not" || op == "is_nan" || op == "is_inf") continue;
    if (op == "acosh") continue;  // its domain is tested below
    check_entry("elementwise", {"op=" + op, "n=37"}, 1e-5);
  }
  for (const std::string& op : binary_names()) {
    if (op == "and" || op == "or" || op == "xor" || op.rfind("bit_", 0) == 0 ||
        op.rfind("shift_", 0) == 0)
      continue;
    check_entry("elementwise", {"op=" + op, "n=37"}, 1e-5);
  }
  for (const char* op : {"add", "sub", "mul", "min", "max", "bit_and", "bit_or", "bit_xor", "less"})
    check_entry("elementwise", {std::string("op=") + op, "n=37", "type=i32"}, 0);
  check_entry("elementwise", {"op=bit_not", "n=37", "type=i32"}, 0);
  for (const char* op : {"and", "or", "xor"})
    check_entry("elementwise", {std::string("op=") + op, "n=37", "type=bool"}, 0);
  check_entry("elementwise", {"op=not", "n=37", "type=bool"}, 0);
  for (const char* n : {"n=0", "n=1", "n=130"})
    check_entry("elementwise", {"op=add_relu", n}, 1e-6);
  RefArray big({3}, {1, 2.5, 1e4});
  check_tensor(unary("acosh", input("x", f32, {3})), {big},
               RefArray({3}, {0, std::acosh(2.5), std::acosh(1e4)}), 1e-5);
}

TEST_CASE("special numbers go through activations") {
  const double nan = std::nan(""), inf = INFINITY;
  const RefArray x({7}, {nan, inf, -inf, 0.0, -0.0, 3e38, -3e38});
  Tensor t = input("x", f32, {7});
  for (const char* op : {"relu", "sigmoid", "tanh", "exp", "abs", "sqrt", "hard_sigmoid", "is_nan",
                         "is_inf", "sign", "softplus"}) {
    INFO(op);
    RefArray y({7});
    for (size_t n = 0; n < 7; ++n) y.values[n] = ref_unary(op, x.values[n]);
    if (std::string(op) == "hard_sigmoid") y.values[0] = nan;
    if (std::string(op) == "exp") y.values[5] = inf;
    check_tensor(unary(op, t), {x}, y, 1e-5);
  }
}

TEST_CASE("movers of the table over odd shapes") {
  auto exact = [](const std::string& name, const Words& words) { check_entry(name, words, 0); };
  for (const char* shape : {"shape=1x7", "shape=17x37", "shape=7x130", "shape=0x7", "shape=37x0"}) {
    exact("transpose", {shape});
    for (const char* axis : {"axis=0", "axis=-1"})
      for (const char* parts : {"parts=1", "parts=4", "parts=17,0,1,37"})
        exact("concat", {shape, axis, parts});
    exact("slice", {shape});
    exact("slice", {shape, "steps=-1"});
    exact("slice", {shape, "steps=3,-2"});
    for (const char* mode : {"mode=constant", "mode=reflect", "mode=edge", "mode=wrap"})
      if (std::string(mode) == "mode=constant" || elements_of(shape) > 0)
        exact("pad", {shape, "before=1,3", "after=0,2", mode, "value=-7"});
    exact("tile", {shape, "repeats=3,2"});
  }
  exact("reshape", {"shape=7x130", "to=13x10x7"});
  exact("reshape", {"shape=17x1x37", "to=17x37"});
  exact("reshape", {"shape=0x7", "to=5x0"});
  exact("slice", {"shape=7x17x37", "starts=1,0,36", "steps=2,5,-3", "extents=3,4,12"});
  exact("slice", {"shape=7x17", "extents=0,3"});
  exact("pad", {"shape=7x17", "before=-2,0", "after=1,-3", "value=5"});
  for (const char* axis : {"axis=0", "axis=1", "axis=-1"})
    for (const char* indices : {"indices=17", "indices=3x7", "indices=scalar", "indices=0"})
      exact("gather", {"shape=17x7x5", indices, axis});
  exact("gather", {"shape=37", "indices=130", "index=i32", "type=u8"});
  exact("gather", {"shape=0x5", "indices=0"});
  exact("expand", {"shape=7x1x17", "to=3x1x37x17"});
  exact("expand", {"shape=1", "to=0x3"});
  exact("expand", {"shape=scalar", "to=37"});
  for (const char* type : {"type=f64", "type=i8", "type=u8", "type=i32", "type=bool"}) {
    exact("concat", {"shape=7x17", "axis=1", type});
    exact("pad", {"shape=7x17", "mode=reflect", type});
    exact("transpose", {"shape=17x37", type});
  }
}

TEST_CASE("movers put every element in its place") {
  const RefArray x = counting({3, 4, 5});
  Tensor t = input("x", i32, {3, 4, 5});
  check_tensor(reshape(t, {6, 10}), {x}, RefArray({6, 10}, x.values), 0);
  check_tensor(reshape(t, {3, 2, 2, 5, 1}), {x}, RefArray({3, 2, 2, 5, 1}, x.values), 0);
  check_tensor(reshape(t, {60}), {x}, RefArray({60}, x.values), 0);
  check_tensor(transpose(t, {2, 0, 1}), {x}, ref_transpose(x, {2, 0, 1}), 0);
  RefArray sliced({3, 2, 3});
  each_point(sliced.shape, [&](const Dims& i) { sliced[i] = x[{i[0], 3 - 2 * i[1], 1 + i[2]}]; });
  check_tensor(slice(t, {0, 3, 1}, {1, -2, 1}, {3, 2, 3}), {x}, sliced, 0);
  Tensor u = input("u", i32, {3, 2, 5});
  const RefArray v = counting({3, 2, 5});
  RefArray joined({3, 6, 5});
  each_point(joined.shape, [&](const Dims& i) {
    joined[i] = i[1] < 4 ? x[i] : v[{i[0], i[1] - 4, i[2]}];
  });
  check_tensor(concat({t, u}, 1), {x, v}, joined, 0);
  Tensor index = input("i", i64, {2});
  RefArray picked({3, 2, 5});
  each_point(picked.shape, [&](const Dims& i) { picked[i] = x[{i[0], i[1] == 0 ? 3 : 1, i[2]}]; });
  check_tensor(gather(t, index, 1), {x, RefArray({2}, {-1, 1})}, picked, 0);
  check_tensor(gather(t, index, 1), {x, RefArray({2}, {99, 1})}, picked, 0);
  check_tensor(expand(input("a", i32, {3, 1}), {2, 3, 2}), {RefArray({3, 1}, {1, 2, 3})},
               RefArray({2, 3, 2}, {1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3}), 0);
  check_tensor(tile(input("a", i32, {3}), {2}), {RefArray({3}, {1, 2, 3})},
               RefArray({6}, {1, 2, 3, 1, 2, 3}), 0);
}

TEST_CASE("pads of every mode") {
  Tensor a = input("a", i32, {4});
  const RefArray x({4}, {1, 2, 3, 4});
  auto check_pad = [&](PadMode mode, std::vector<double> expected) {
    check_tensor(pad(a, {2}, {3}, mode, int_imm(9, i32)), {x}, RefArray({9}, std::move(expected)),
                 0);
  };
  check_pad(PadMode::constant, {9, 9, 1, 2, 3, 4, 9, 9, 9});
  check_pad(PadMode::edge, {1, 1, 1, 2, 3, 4, 4, 4, 4});
  check_pad(PadMode::reflect, {3, 2, 1, 2, 3, 4, 3, 2, 1});
  check_pad(PadMode::wrap, {3, 4, 1, 2, 3, 4, 1, 2, 3});
  check_tensor(pad(a, {-1}, {-2}, PadMode::constant, int_imm(0, i32)), {x}, RefArray({1}, {2}), 0);
}

TEST_CASE("merged dimensions give the same numbers") {
  const KernelEntry& conv = find_kernel("conv2d");
  const KernelArgs args = parse_kernel_args(conv, {"c_in=3", "h=5", "w=7", "c_out=4", "k=1"});
  const Program program = make_program("p", conv.build(args));
  const Program merged = merge_dimensions(program);
  REQUIRE(merged.params[0].buffer->shape.size() < 4);
  const auto inputs = random_inputs(program, 9);
  CHECK(run_interpreted(merged, inputs).values == run_interpreted(program, inputs).values);
}
