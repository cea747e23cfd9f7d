#include "template_cases.h"

#include <fmt/format.h>
#include <tenon/support/text.h>

#include <catch2/catch.hpp>

#include "kernels/elementwise.h"
#include "kernels/table.h"

namespace tenon {
namespace {

/// What the graph fuses behind a kernel: nothing, a bias, a residual, a chain of maps.
Tensor with_epilogue(const Tensor& t, int kind) {
  const DType type = t.dtype();
  const auto shape = t.extents();
  if (kind == 1) {
    std::vector<int64_t> bias(shape.size(), 1);
    if (!shape.empty()) bias[shape.size() > 2 ? 1 : 0] = shape[shape.size() > 2 ? 1 : 0];
    return binary("add", t, input("bias", type, bias), {}, "biased");
  }
  if (kind == 2) return binary("add", t, input("residual", type, shape), {}, "joined");
  if (kind == 3) {
    Tensor scaled = binary("mul", t, input("factor", type, {1}), {}, "scaled");
    return unary("hard_swish", binary("add", unary("relu", scaled, {}, "lifted"), t, {}, "joined"),
                 {}, "out");
  }
  return t;
}

}  // namespace

std::string text(const Case& c) { return c.kernel + " " + join(c.words, " "); }

const std::vector<Case>& template_cases() {
  static const std::vector<Case> list = {
      {"matmul", {"m=37", "n=130", "k=17"}},
      {"matmul", {"m=7", "n=17", "k=5"}},
      {"matmul", {"m=1", "n=100", "k=37"}},
      {"matmul", {"m=64", "n=1", "k=9"}},
      {"matmul", {"m=20", "n=40", "k=7", "type=f64"}},
      {"matmul", {"m=37", "n=150", "k=70"}},
      {"batch_matmul", {"batch=3", "m=17", "n=37", "k=7"}},
      {"batch_matmul", {"batch=2", "m=20", "n=40", "k=35"}},
      {"batch_matmul", {"batch=5", "m=150", "n=70", "k=9"}},
      {"gemm", {"m=17", "n=37", "k=20"}},
      {"gemm", {"m=15", "n=70", "k=40", "transpose_b=1"}},
      {"conv2d", {"c_in=5", "h=13", "w=17", "c_out=7", "k=3", "pad=1"}},
      {"conv2d", {"c_in=6", "h=9", "w=20", "c_out=12", "k=1"}},
      {"conv2d", {"n=2", "c_in=6", "h=9", "w=9", "c_out=12", "k=1", "groups=3"}},
      {"conv2d", {"c_in=3", "h=17", "w=17", "c_out=8", "k=3", "stride=2", "pad=1"}},
      {"conv2d", {"c_in=7", "h=13", "w=17", "c_out=7", "k=3", "pad=1", "groups=7"}},
      {"conv2d", {"c_in=4", "h=12", "w=13", "c_out=4", "k=5", "pad=2", "stride=2", "groups=4"}},
      {"conv2d", {"c_in=5", "h=7", "w=7", "c_out=5", "k=5", "pad=2", "groups=5"}},
      {"conv2d", {"n=2", "c_in=3", "h=19", "w=35", "c_out=3", "k=3", "pad=1", "groups=3"}},
      {"conv2d", {"c_in=3", "h=9", "w=11", "c_out=3", "k=7", "pad=3", "groups=3", "type=f64"}},
      {"conv2d", {"c_in=2", "h=1", "w=70", "c_out=2", "k=3", "pad=1", "groups=2"}},
      {"conv2d", {"c_in=3", "h=13", "w=20", "c_out=3", "k=3", "pad=2", "dilation=2", "groups=3"}},
      {"conv2d", {"c_in=6", "h=9", "w=21", "c_out=3", "k=3", "stride=2", "pad=1", "groups=3"}},
      {"conv2d", {"c_in=3", "h=9", "w=20", "c_out=6", "k=3", "pad=1", "groups=3"}},
      {"conv2d", {"n=2", "c_in=20", "h=15", "w=19", "c_out=35", "k=3", "stride=2", "pad=1"}},
      {"conv2d_blocked", {"c_in=20", "h=9", "w=17", "c_out=35", "k=3", "pad=1"}},
      {"conv2d_blocked", {"n=2", "c_in=48", "h=7", "w=7", "c_out=40", "k=1"}},
      {"conv2d_blocked",
       {"c_in=3", "h=17", "w=19", "c_out=32", "k=7", "stride=2", "pad=3", "input=plain"}},
      {"conv2d_blocked", {"c_in=37", "h=13", "w=17", "c_out=37", "k=3", "pad=1", "groups=37"}},
      {"conv2d_blocked",
       {"c_in=32", "h=9", "w=11", "c_out=64", "k=3", "pad=2", "dilation=2", "groups=2"}},
      {"conv2d_blocked",
       {"c_in=12", "h=9", "w=9", "c_out=8", "k=3", "stride=2", "pad=1", "groups=4", "block=8"}},
      {"conv2d_blocked", {"c_in=16", "h=5", "w=5", "c_out=16", "k=5", "pad=2", "type=f64"}},
      {"conv1d", {"c_in=5", "w=37", "c_out=20", "k=3", "pad=1"}},
      {"conv1d_blocked", {"c_in=20", "w=37", "c_out=35", "k=3", "pad=1"}},
      {"conv1d_blocked", {"n=2", "c_in=16", "w=23", "c_out=32", "k=5", "stride=2", "pad=2"}},
      {"conv2d_transpose", {"c_in=5", "h=5", "w=7", "c_out=6", "k=4", "stride=2", "pad=1"}},
      {"conv2d_transpose_blocked",
       {"c_in=20", "h=5", "w=9", "c_out=35", "k=4", "stride=2", "pad=1"}},
      {"conv2d_transpose_blocked",
       {"n=2", "c_in=16", "h=4", "w=7", "c_out=32", "k=3", "stride=2", "pad=1"}},
      {"conv2d_transpose_blocked",
       {"c_in=8", "h=4", "w=3", "c_out=8", "k=2", "stride=3", "block=8", "type=f64"}},
      {"block_channels", {"c=37", "h=5", "w=7"}},
      {"unblock_channels", {"c=37", "h=5", "w=7"}},
      {"pool", {"c=3", "h=17", "w=19", "k=3", "stride=2", "pad=1"}},
      {"pool", {"op=avg", "c=3", "h=13", "w=19", "k=2", "pad=1"}},
      {"pool", {"c=37", "h=9", "w=13", "k=3", "stride=2", "pad=1", "block=16"}},
      {"pool", {"op=avg", "n=2", "c=20", "h=7", "w=9", "k=3", "pad=1", "block=8"}},
      {"pool", {"op=avg", "c=37", "h=7", "w=7", "k=7", "block=16"}},
      {"pool", {"op=avg", "c=37", "h=7", "w=7", "k=7"}},
      {"pool", {"c=3", "h=5", "w=5", "k=5", "stride=4", "pad=3"}},
      {"softmax", {"rows=7", "columns=130"}},
      {"softmax", {"rows=5", "columns=17"}},
      {"log_softmax", {"rows=7", "columns=100"}},
      {"attention", {"heads=2", "q=37", "kv=29", "d=20"}},
      {"attention", {"heads=3", "q=1", "kv=70", "d=17"}},
      {"attention", {"heads=1", "q=5", "kv=40", "d=9", "mask=add", "keys=columns"}},
      {"attention", {"heads=2", "q=20", "kv=20", "d=16", "mask=causal", "type=f64"}},
      {"attention", {"heads=2", "q=20", "kv=50", "d=17", "tile=16"}},
      {"layer_norm", {"rows=5", "columns=70"}},
      {"batch_norm", {"c=5", "h=7", "w=9"}},
      {"reduce", {"shape=17x37", "axis=0"}},
      {"reduce", {"shape=17x130", "axis=1"}},
      {"reduce", {"op=mean", "shape=7x5x9", "axis=1,2"}},
      {"reduce", {"op=max", "shape=5x3x7x9", "axis=0,2,3"}},
      {"reduce", {"shape=37x49", "axis=1"}},
      {"reduce", {"shape=7x56x3", "axis=1,2"}},
      {"reduce", {"op=max", "shape=40000", "axis=all"}},
      {"elementwise", {"op=gelu", "n=1001"}},
      {"elementwise", {"op=add_relu", "n=37"}},
      {"transpose", {"shape=37x70"}},
      {"transpose", {"shape=22x45", "type=f16"}},
      {"transpose", {"shape=70x35", "type=f64"}},
      {"transpose", {"shape=3x20x33", "perm=2,0,1"}},
      {"global_pool", {"c=17", "h=7", "w=13"}},
      {"global_pool", {"op=max", "n=2", "c=5", "h=17", "w=9"}},
      {"reshape", {"shape=7x130", "to=13x10x7"}},
      {"concat", {"shape=3x5x7", "parts=4"}},
      {"concat", {"shape=7x37", "axis=1", "parts=17,1,37"}},
      {"slice", {"shape=7x17x37", "starts=1,0,36", "steps=2,5,-3", "extents=3,4,12"}},
      {"slice", {"shape=17x70", "steps=1,2"}},
      {"pad", {"shape=5x13x17", "before=0,1,2", "after=0,2,1", "value=3"}},
      {"pad", {"shape=7x37", "before=3", "after=2", "mode=reflect"}},
      {"pad", {"shape=7x37", "before=1,20", "after=0,9", "mode=edge"}},
      {"gather", {"shape=37x17", "indices=20"}},
      {"gather", {"shape=7x37", "indices=3x7", "axis=1", "index=i32"}},
      {"expand", {"shape=7x1x17", "to=3x7x5x17"}},
      {"tile", {"shape=5x17", "repeats=3,2"}},
      {"matmul", {"m=0", "n=5", "k=3"}},
      {"matmul", {"m=5", "n=7", "k=0"}},
      {"softmax", {"rows=3", "columns=0"}},
  };
  return list;
}

Program build_case(const Case& c, int epilogue) {
  const KernelEntry& entry = find_kernel(c.kernel);
  const Tensor t = entry.build(parse_kernel_args(entry, c.words))[0];
  return merge_dimensions(make_program(c.kernel, {with_epilogue(t, epilogue)}));
}

void check_point(const Program& program, const Target& target, const NamedTemplate& t,
                 const Point& point, const std::vector<RefArray>& inputs, const RefArray& expected,
                 double bound, bool interpret_too) {
  Schedule s(program, target);
  Knobs knobs(point);
  t.fn(s, knobs);
  INFO(target.name << ", " << t.name << " " << point.to_json() << "\n" << s.print());
  CHECK(difference(run_compiled(s.program(), inputs, target), expected, bound) == "");
  if (interpret_too) CHECK(difference(run_interpreted(s.program(), inputs), expected, bound) == "");
}

}  // namespace tenon
