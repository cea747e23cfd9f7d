#include <fmt/format.h>
#include <tenon/support/rng.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/contraction.h"
#include "kernels/table.h"
#include "kernels/templates.h"
#include "template_cases.h"

using namespace tenon;
using Words = std::vector<std::string>;

namespace {

/// Integers as their type keeps them: modulo 2^bits.
RefArray wrapped(RefArray a, DType type) {
  if (is_float(type)) return a;
  const double range = std::ldexp(1.0, 8 * static_cast<int>(byte_size(type)));
  const double low = is_signed_int(type) ? -range / 2 : 0;
  for (double& v : a.values)  // what fits stays: near 2^64 doubles are not exact
    if (v < low || v >= low + range) v -= range * std::floor((v - low) / range);
  return a;
}

/// The inputs of a program whose dimensions were merged, in the shapes of the formula.
std::vector<RefArray> shaped_inputs(const std::vector<Tensor>& formula,
                                    std::vector<RefArray> inputs) {
  const Program program = make_program("p", formula);
  size_t next = 0;
  for (const Param& p : program.params)
    if (p.role != ParamRole::output) inputs.at(next++).shape = *const_shape(p.buffer->shape);
  return inputs;
}

/// Every operator with extents of 0 to 130 where they matter.
std::vector<Case> cases_of_extent(int64_t extent) {
  const auto set = [&](const char* pattern) { return fmt::format(fmt::runtime(pattern), extent); };
  std::vector<Case> list = {
      {"matmul", {set("m={}"), "n=37", "k=7"}},
      {"matmul", {"m=7", set("n={}"), "k=17"}},
      {"matmul", {"m=7", "n=17", set("k={}")}},
      {"batch_matmul", {set("batch={}"), "m=7", "n=17", "k=5"}},
      {"gemm", {"m=7", set("n={}"), "k=17"}},
      {"gemm", {"m=7", "n=17", set("k={}")}},
      {"conv2d", {"c_in=3", set("h={}"), "w=7", "c_out=5", "k=3", "pad=1"}},
      {"conv2d", {"c_in=7", "h=7", set("w={}"), "c_out=7", "k=3", "pad=1", "groups=7"}},
      {"conv2d", {set("n={}"), "c_in=3", "h=3", "w=5", "c_out=2", "k=1", "bias=0"}},
      {"pool", {set("c={}"), "h=7", "w=17", "k=3", "stride=2", "pad=1"}},
      {"pool", {"op=avg", "c=3", "h=7", set("w={}"), "k=2", "pad=1"}},
      {"global_pool", {set("c={}"), "h=7", "w=5"}},
      {"softmax", {"rows=7", set("columns={}")}},
      {"log_softmax", {set("rows={}"), "columns=17"}},
      {"attention", {"heads=2", set("q={}"), "kv=9", "d=5"}},
      {"layer_norm", {set("rows={}"), "columns=37"}},
      {"batch_norm", {"c=7", "h=5", set("w={}")}},
      {"reduce", {set("shape=7x{}"), "axis=1"}},
      {"reduce", {set("shape={}x17"), "axis=0"}},
      {"elementwise", {"op=add_relu", set("n={}")}},
      {"transpose", {set("shape=17x{}")}},
      {"reshape", {set("shape=6x{}"), set("to=2x{}x3")}},
      {"concat", {"shape=7x5", "axis=1", set("parts=1,{},17")}},
      {"concat", {set("shape=3x{}"), "parts=4"}},
      {"slice", {set("shape=7x{}"), "steps=2,-3"}},
      {"pad", {set("shape=7x{}"), "before=0,2", "after=1,3", "value=2"}},
      {"gather", {"shape=17x7", set("indices={}")}},
      {"expand", {"shape=7x1", set("to=7x{}")}},
      {"tile", {set("shape=3x{}"), "repeats=2,3"}}};
  if (extent > 0) {
    list.push_back({"attention", {"heads=1", "q=7", set("kv={}"), "d=17"}});
    list.push_back({"layer_norm", {"rows=7", set("columns={}")}});
    list.push_back({"global_pool", {"op=max", "c=7", set("h={}"), "w=3"}});
    list.push_back({"pad", {set("shape=5x{}"), "before=4", "after=9", "mode=reflect"}});
    list.push_back({"gather", {set("shape={}x7"), "indices=17"}});
  }
  return list;
}

const std::vector<Case>& cases_in_any_type() {
  static const std::vector<Case> list = {
      {"matmul", {"m=7", "n=37", "k=17"}},
      {"matmul", {"m=1", "n=17", "k=130"}},
      {"batch_matmul", {"batch=2", "m=7", "n=17", "k=5"}},
      {"gemm", {"m=5", "n=17", "k=37"}},
      {"conv2d", {"c_in=3", "h=7", "w=9", "c_out=4", "k=3", "pad=1"}},
      {"elementwise", {"op=add_relu", "n=130"}},
      {"elementwise", {"op=mul", "n=37"}},
      {"elementwise", {"op=neg", "n=37"}},
      {"reduce", {"op=sum", "shape=7x130", "axis=1"}},
      {"reduce", {"op=sum_square", "shape=17x37", "axis=0"}},
      {"reduce", {"op=prod", "shape=3x7", "axis=1"}},
      {"reduce", {"op=max", "shape=7x37", "axis=1"}},
      {"reduce", {"op=min", "shape=7x130", "axis=all"}},
      {"pool", {"c=3", "h=7", "w=17", "k=3", "stride=2", "pad=1"}},
      {"global_pool", {"op=max", "c=17", "h=7", "w=5"}},
      {"transpose", {"shape=17x37"}},
      {"gather", {"shape=17x7", "indices=5"}},
      {"pad", {"shape=7x17", "mode=reflect"}},
  };
  return list;
}

/// Of half floats two roundings may differ by a step.
double bound_of(const Program& program) {
  for (const Param& p : program.params)
    if (p.role == ParamRole::output && p.buffer->dtype == f16) return 1e-3;
  return 1e-4;
}

}  // namespace

TEST_CASE("every template at random points under random epilogues") {
  Rng rng(11);
  const Target host = Target::host();
  for (const Case& c : template_cases())
    for (int epilogue = 0; epilogue < kEpilogues; ++epilogue) {
      const Program program = build_case(c, epilogue);
      INFO(text(c) << ", epilogue " << epilogue);
      auto inputs = random_inputs(program, rng.next());
      const RefArray expected = run_interpreted(program, inputs);
      const double bound = bound_of(program);
      for (const NamedTemplate& t : templates_for(program, host)) {
        const KnobSpace space = survey(t.fn, program, host);
        check_point(program, host, t, space.default_point(), inputs, expected, bound, true);
        for (int n = 0; n < 2; ++n)
          check_point(program, host, t, space.random_point(rng), inputs, expected, bound, n == 0);
      }
    }
}

TEST_CASE("every template for narrower targets") {
  Rng rng(5);
  for (const char* name : {"x86-64/avx2", "x86-64/sse2"}) {
    const Target target = Target::parse(name);
    if (!target.runs_on(Target::host())) {
      WARN("skipped for " << name << ": this machine cannot run it");
      continue;
    }
    int epilogue = 0;
    for (const Case& c : template_cases()) {
      const Program program = build_case(c, epilogue);
      INFO(text(c) << ", epilogue " << epilogue);
      epilogue = (epilogue + 1) % kEpilogues;
      const auto inputs = random_inputs(program, rng.next());
      const RefArray expected = run_interpreted(program, inputs);
      const double bound = bound_of(program);
      for (const NamedTemplate& t : templates_for(program, target)) {
        const KnobSpace space = survey(t.fn, program, target);
        check_point(program, target, t, space.default_point(), inputs, expected, bound, false);
        check_point(program, target, t, space.random_point(rng), inputs, expected, bound, false);
      }
    }
  }
}

TEST_CASE("every template at its default over odd extents") {
  const Target host = Target::host();
  for (const int64_t extent : {0, 1, 7, 17, 37, 130})
    for (const Case& c : cases_of_extent(extent)) {
      INFO(text(c));
      const KernelEntry& entry = find_kernel(c.kernel);
      const KernelArgs args = parse_kernel_args(entry, c.words);
      const Program program = build_case(c, 0);
      auto inputs = random_inputs(program, 3);
      RefArray expected = run_interpreted(program, inputs);
      expected.values = entry.reference(args, shaped_inputs(entry.build(args), inputs)).values;
      for (const NamedTemplate& t : templates_for(program, host))
        check_point(program, host, t, survey(t.fn, program, host).default_point(), inputs, expected,
                    1e-4, true);
    }
}

TEST_CASE("every template in other types, and integers exactly") {
  const Target host = Target::host();
  for (const char* level : {"host", "x86-64/avx2", "x86-64/sse2"}) {
    const Target target = Target::parse(level);
    if (!target.runs_on(host)) continue;
    const bool narrow = std::string(level) != "host";
    for (const DType type : {f64, i32, i8, u8, i64, i16, u32, u16}) {
      if (narrow && (type == i64 || type == i16 || type == u32 || type == u16)) continue;
      for (Case c : cases_in_any_type()) {
        c.words.push_back(fmt::format("type={}", name(type)));
        INFO(text(c));
        const KernelEntry& entry = find_kernel(c.kernel);
        const KernelArgs args = parse_kernel_args(entry, c.words);
        const Program program = build_case(c, 0);
        const auto inputs = random_inputs(program, 23);
        const double bound = is_float(type) ? 1e-12 : 0;
        RefArray expected = run_interpreted(program, inputs);
        const RefArray plain =
            wrapped(entry.reference(args, shaped_inputs(entry.build(args), inputs)), type);
        CHECK(difference(expected, RefArray(expected.shape, plain.values), bound) == "");
        for (const NamedTemplate& t : templates_for(program, target))
          check_point(program, target, t, survey(t.fn, program, target).default_point(), inputs,
                      expected, bound, !narrow);
      }
    }
  }
}

TEST_CASE("a product is given to the matmul template, and its register tile is full") {
  const Target target = Target::parse("x86-64/avx512");
  const KernelEntry& entry = find_kernel("matmul");
  const Program program =
      make_program("p", entry.build(parse_kernel_args(entry, {"m=1024", "n=1024", "k=1024"})));
  const auto c = find_contraction(program, "C");
  REQUIRE(c);
  CHECK(c->rows->loop == "i");
  CHECK(c->vector.loop == "j");
  CHECK(c->x_buffer == "B");
  CHECK(c->x_contiguous);
  const RegisterTile tile = best_tile(*c, target);
  CHECK(registers_used(tile) <= registers_free(target));
  CHECK(tile.rows * tile.extra * tile.vectors >= 16);
  CHECK(tile.vectors >= 2);
  CHECK(templates_for(program, target)[0].name == "matmul");
}

TEST_CASE("sums of rows go to the row template, those of half a vector or less do not") {
  const Target target = Target::parse("x86-64/avx512");
  const auto first = [&](const char* shape, const char* axis) {
    const KernelEntry& entry = find_kernel("reduce");
    const Program program =
        merge_dimensions(make_program("p", entry.build(parse_kernel_args(entry, {shape, axis}))));
    return templates_for(program, target)[0].name;
  };
  CHECK(first("shape=37x49", "axis=1") == "row");
  CHECK(first("shape=37x3x7", "axis=1,2") == "row");
  CHECK(first("shape=37x5", "axis=1") != "row");
  CHECK(first("shape=49x37", "axis=0") != "row");
}

TEST_CASE("pools carry NaN and infinities, whatever the template and the level") {
  const std::vector<Case> cases = {
      {"pool", {"c=20", "h=5", "w=9", "k=3", "stride=2", "pad=1", "block=16"}},
      {"pool", {"c=3", "h=5", "w=19", "k=3", "stride=2", "pad=1"}},
      {"pool", {"op=avg", "c=20", "h=5", "w=9", "k=3", "pad=1", "block=16"}},
      {"pool", {"op=avg", "c=5", "h=3", "w=5", "k=2", "pad=1"}},
      {"global_pool", {"op=max", "c=17", "h=5", "w=7"}}};
  for (const Case& c : cases) {
    const Program program = build_case(c, 0);
    std::vector<RefArray> inputs = random_inputs(program, 3);
    std::vector<double>& x = inputs[0].values;
    for (size_t n = 0; n < x.size(); n += 11)
      x[n] = n % 3 == 0 ? std::nan("") : n % 3 == 1 ? -INFINITY : INFINITY;
    const RefArray expected = run_interpreted(program, inputs);
    for (const char* level : {"x86-64/avx512", "x86-64/avx2", "x86-64/sse2"}) {
      const Target target = Target::parse(level);
      if (!target.runs_on(Target::host())) continue;
      for (const NamedTemplate& t : templates_for(program, target)) {
        INFO(text(c));
        check_point(program, target, t, survey(t.fn, program, target).default_point(), inputs,
                    expected, 1e-5, false);
      }
    }
  }
}

TEST_CASE("the parts of a convolution's loops are recognised") {
  auto parts = [](const Words& words) {
    const KernelEntry& entry = find_kernel("conv2d");
    return *find_contraction(make_program("p", entry.build(parse_kernel_args(entry, words))), "Y");
  };
  const Contraction dense = parts({"c_in=8", "h=9", "w=20", "c_out=16", "k=3"});
  CHECK(dense.rows->loop == "oc");
  CHECK(dense.extra->loop == "oh");
  CHECK(dense.vector.loop == "ow");
  CHECK(dense.rows_group == 0);
  const Contraction depthwise = parts({"c_in=8", "h=9", "w=20", "c_out=8", "k=3", "groups=8"});
  CHECK_FALSE(depthwise.rows);
  CHECK(depthwise.batch.back().loop == "oc");
  const Contraction grouped = parts({"c_in=8", "h=9", "w=20", "c_out=16", "k=3", "groups=4"});
  CHECK(grouped.rows->loop == "oc");
  CHECK(grouped.rows_group == 4);
}
