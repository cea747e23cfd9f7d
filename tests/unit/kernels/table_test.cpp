#include <tenon/support/error.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "kernels/table.h"

using namespace tenon;
using Catch::Matchers::Contains;

TEST_CASE("arguments are read as words") {
  const KernelEntry& matmul = find_kernel("matmul");
  KernelArgs args = parse_kernel_args(matmul, {"m=3", "n=4", "k=5", "constant=B"});
  CHECK(args.number("k") == 5);
  CHECK(args.type() == f32);
  CHECK(matmul.flops(args) == 2.0 * 3 * 4 * 5);
  CHECK(args.to_json() == R"({"constant":"B","k":5,"m":3,"n":4,"type":"f32"})");
  Program p = make_program("matmul", matmul.build(args));
  CHECK(p.params[0].role == ParamRole::input);
  CHECK(p.params[1].role == ParamRole::constant);
}

TEST_CASE("wrong arguments are named with what exists") {
  const KernelEntry& matmul = find_kernel("matmul");
  auto parse = [&](std::vector<std::string> words) { return parse_kernel_args(matmul, words); };
  CHECK_THROWS_WITH(parse({"m=3", "n=4"}),
                    Contains("matmul: missing k") && Contains("columns of A"));
  CHECK_THROWS_WITH(parse({"m=3", "n=4", "k=x"}), Contains("\"x\" is not a whole number"));
  CHECK_THROWS_WITH(parse({"m=-3"}), Contains("must be at least 0"));
  CHECK_THROWS_WITH(parse({"m=9223372036854775807"}), Contains("must be at most 2147483648"));
  CHECK_THROWS_WITH(parse({"m=3", "m=4"}), Contains("\"m\" is given twice"));
  CHECK_THROWS_WITH(parse({"typ=f32"}), Contains("unknown argument \"typ\"; did you mean type"));
  CHECK_THROWS_WITH(parse({"m"}), Contains("\"m\" is not NAME=VALUE"));
  CHECK_THROWS_WITH(parse({"type=f31"}), Contains("type=f31: unknown type"));
  CHECK_THROWS_WITH(parse({"constant=W"}),
                    Contains("there is no input \"W\"; the inputs are A, B"));
  CHECK_THROWS_WITH(find_kernel("matmull"), Contains("did you mean matmul"));
  CHECK_THROWS_WITH(parse_kernel_args(find_kernel("reduce"), {"shape=3y4"}),
                    Contains("a shape looks like"));
  CHECK_THROWS_WITH(parse_kernel_args(find_kernel("pool"), {"op=mean"}),
                    Contains("there are: max, avg"));
  const KernelEntry& reduce = find_kernel("reduce");
  CHECK_THROWS_WITH(reduce.build(parse_kernel_args(reduce, {"shape=3x4", "axis=one"})),
                    Contains("try: axis=0"));
}

TEST_CASE("lists of numbers are checked against the shape") {
  auto build = [](const std::string& name, const std::vector<std::string>& words) {
    const KernelEntry& entry = find_kernel(name);
    return entry.build(parse_kernel_args(entry, words))[0].extents();
  };
  using Shape = std::vector<int64_t>;
  CHECK(build("slice", {"shape=7x9", "steps=2,-3"}) == Shape{4, 3});
  CHECK(build("slice", {"shape=7x9", "starts=1,8", "steps=1,-1", "extents=2"}) == Shape{2, 2});
  CHECK(build("concat", {"shape=7x9", "axis=-1", "parts=1,2,3"}) == Shape{7, 6});
  CHECK(build("pad", {"shape=7x9", "before=0,2"}) == Shape{8, 12});
  CHECK(build("gather", {"shape=7x9", "indices=2x3", "axis=1"}) == Shape{7, 2, 3});
  CHECK_THROWS_WITH(build("slice", {"shape=7x9", "steps=1,2,3"}),
                    Contains("steps=1,2,3 has 3 numbers for the 2 dimensions of 7x9"));
  CHECK_THROWS_WITH(build("slice", {"shape=7x9", "steps=0"}), Contains("a step must not be 0"));
  CHECK_THROWS_WITH(build("slice", {"shape=7x9", "extents=-1"}), Contains("must be 0 or more"));
  CHECK_THROWS_WITH(build("slice", {"shape=7x9", "starts=9000000000000000000"}),
                    Contains("is too large"));
  CHECK_THROWS_WITH(build("slice", {"shape=7x9", "starts=2,9", "extents=1"}),
                    Contains("has no elements 9 to 9"));
  CHECK_THROWS_WITH(build("concat", {"shape=7x9", "parts=9"}), Contains("there can be 1 to 8"));
  CHECK_THROWS_WITH(build("concat", {"shape=7x9", "parts=3,-1"}), Contains("must be 0 or more"));
  CHECK_THROWS_WITH(build("concat", {"shape=7x9", "axis=2"}), Contains("axis 2 is not in [-2, 2)"));
  CHECK_THROWS_WITH(build("transpose", {"shape=7x9", "perm=1,x"}), Contains("try: perm=0,2,1"));
}

TEST_CASE("positions have the range of the dimension they count along") {
  const KernelEntry& gather = find_kernel("gather");
  const auto ranges =
      gather.ranges(parse_kernel_args(gather, {"shape=7x9", "indices=4", "axis=-1"}));
  CHECK(ranges.at("I") == std::pair<int64_t, int64_t>{-9, 8});
  CHECK_FALSE(find_kernel("matmul").ranges);
}

TEST_CASE("flops count what the operator does") {
  const KernelEntry& conv = find_kernel("conv2d");
  KernelArgs args =
      parse_kernel_args(conv, {"c_in=64", "h=56", "w=56", "c_out=64", "k=3", "pad=1"});
  CHECK(conv.flops(args) == 2.0 * 64 * 64 * 9 * 56 * 56);
  args = parse_kernel_args(
      conv, {"c_in=96", "h=112", "w=112", "c_out=96", "k=3", "pad=1", "stride=2", "groups=96"});
  CHECK(conv.flops(args) == 2.0 * 96 * 9 * 56 * 56);
}

TEST_CASE("the table's names differ and its inputs are those of the formula") {
  std::set<std::string> names;
  for (const KernelEntry& entry : kernel_table()) {
    CHECK(names.insert(entry.name).second);
    CHECK_FALSE(entry.summary.empty());
    std::vector<std::string> words;
    for (const KernelArg& arg : entry.args)
      if (arg.standard.empty())
        words.push_back(arg.name + (arg.kind == KernelArg::Kind::shape ? "=4x4"
                                    : arg.name == "op"                 ? "=add"
                                                                       : "=4"));
    INFO(entry.name);
    Program p = make_program(entry.name, entry.build(parse_kernel_args(entry, words)));
    std::vector<std::string> inputs;
    for (const Param& param : p.params)
      if (param.role == ParamRole::input) inputs.push_back(param.buffer->name);
    // An operator with a variable number of inputs, or an optional mask, reads the first of them.
    REQUIRE(inputs.size() <= entry.inputs.size());
    if (entry.name != "concat" && entry.name != "attention")
      CHECK(inputs.size() == entry.inputs.size());
    CHECK(std::equal(inputs.begin(), inputs.end(), entry.inputs.begin()));
  }
}
