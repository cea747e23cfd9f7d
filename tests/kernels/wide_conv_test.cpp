#include <fmt/format.h>
#include <tenon/compile/compile.h>
#include <tenon/support/rng.h>
#include <tenon/support/text.h>
#include <tenon/te/te.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "kernels/conv.h"
#include "kernels/matmul.h"
#include "kernels/table.h"
#include "kernels/templates.h"
#include "template_cases.h"

// Convolutions and products of narrow numbers with wide sums, on the matrix unit, on dot products
// and on plain vectors, beside the interpreter on the unscheduled formula and plain loops: integers
// exactly, bf16 within the bound of a sum whose terms are added in another order.

using namespace tenon;
using Words = std::vector<std::string>;

namespace {

/// The machine, its vectors with dot products alone, without those, and a narrower level.
std::vector<Target> levels() {
  std::vector<Target> out;
  for (const char* name : {"host", "host,-amx", "host,-amx,-avx512vnni,-avxvnni,-avx512bf16",
                           "x86-64/avx2", "x86-64/sse2"})
    if (Target::parse(name).runs_on(Target::host())) out.push_back(Target::parse(name));
  return out;
}

/// Bytes at both ends of their range as often as not; halves in [-1, 1).
std::vector<RefArray> operands(const Program& program, uint64_t seed) {
  std::vector<RefArray> out = random_inputs(program, seed);
  Rng rng(seed);
  for (size_t n = 0; n < 2; ++n) {
    const DType t = program.params[n].buffer->dtype;
    if (byte_size(t) != 1) continue;
    const double low = t == u8 ? 0 : -128;
    for (double& v : out[n].values)
      v = low + (rng.chance(0.5)   ? static_cast<double>(rng.below(256))
                 : rng.chance(0.5) ? 255.0
                                   : 0.0);
  }
  return out;
}

/// Lanes past the channels hold what nobody may read.
void spoil_rest(RefArray& x, int64_t channels) {
  const int64_t block = x.shape.back();
  each_point(x.shape, [&](const std::vector<int64_t>& at) {
    if (at[1] * block + at.back() >= channels) x[at] = 99;
  });
}

struct Numbers {
  const char *x, *w;
};

/// On the first target every template at its default, the first two at a random point as well; on
/// the others the first two.
void check(const Case& c, const std::vector<Target>& targets, Rng& rng) {
  const KernelEntry& entry = find_kernel(c.kernel);
  const KernelArgs args = parse_kernel_args(entry, c.words);
  const std::vector<Tensor> formula = entry.build(args);
  const Program plain = make_program(c.kernel, formula), program = merge_dimensions(plain);
  std::vector<RefArray> inputs = operands(program, rng.next());
  std::vector<RefArray> shaped = inputs;
  size_t next = 0;
  for (const Param& p : plain.params)
    if (p.role != ParamRole::output) shaped[next++].shape = *const_shape(p.buffer->shape);
  if (c.kernel == "conv2d_wide") {
    spoil_rest(shaped[0], args.number("c_in"));
    inputs[0].values = shaped[0].values;
  }
  const RefArray expected = run_interpreted(program, inputs);
  const double terms = entry.flops(args) / 2 / static_cast<double>(expected.values.size());
  const bool floats = is_float(formula[0].dtype());
  const double bound = floats ? 2 * (terms + 2) * terms * 0x1p-24 : 0;
  INFO(text(c));
  RefArray by_loops = entry.reference(args, shaped);
  by_loops.shape = expected.shape;
  REQUIRE(difference(expected, by_loops, bound) == "");
  for (const Target& target : targets) {
    size_t number = 0;
    for (const NamedTemplate& t : templates_for(program, target)) {
      const KnobSpace space = survey(t.fn, program, target);
      const bool host = &target == &targets[0];
      check_point(program, target, t, space.default_point(), inputs, expected, bound,
                  host && number == 0);
      if (number++ < 2 && &target <= &targets[1])
        check_point(program, target, t, space.random_point(rng), inputs, expected, bound, false);
      if (!host && number >= 2) break;
    }
  }
}

const std::vector<Words>& conv_shapes() {
  static const std::vector<Words> list = {
      {"c_in=64", "h=5", "w=7", "c_out=64", "k=1"},
      {"c_in=128", "h=3", "w=17", "c_out=64", "k=1", "n=2"},
      {"c_in=64", "h=7", "w=7", "c_out=128", "k=3", "pad=1"},
      {"c_in=64", "h=9", "w=37", "c_out=64", "k=3", "pad=1"},
      {"c_in=64", "h=14", "w=15", "c_out=64", "k=3", "stride=2", "pad=1"},
      {"c_in=64", "h=13", "w=9", "c_out=64", "k=1", "stride=2"},
      {"c_in=64", "h=6", "w=1", "c_out=64", "k=1"},
      {"c_in=70", "h=5", "w=6", "c_out=40", "k=3", "pad=1"},
      {"c_in=20", "h=4", "w=5", "c_out=32", "k=3", "pad=2", "dilation=2", "block=32"},
      {"c_in=33", "h=1", "w=19", "c_out=17", "k=1", "block=16"},
  };
  return list;
}

}  // namespace

TEST_CASE("convolutions of narrow numbers by every template on every level of target") {
  Rng rng(41);
  const std::vector<Target> all = levels();
  for (const Words& shape : conv_shapes())
    for (const Numbers n : {Numbers{"u8", "i8"}, {"bf16", "same"}}) {
      Words words = shape;
      words.insert(words.end(), {fmt::format("type={}", n.x), fmt::format("other={}", n.w)});
      check({"conv2d_wide", words}, all, rng);
    }
}

TEST_CASE("convolutions of bytes of either sign, weights known or not") {
  Rng rng(43);
  for (const Numbers n : {Numbers{"i8", "u8"}, {"i8", "same"}, {"u8", "same"}})
    for (const bool known : {false, true}) {
      Words words = {"c_in=64", "h=6", "w=18", "c_out=64", "k=3", "pad=1"};
      words.insert(words.end(), {fmt::format("type={}", n.x), fmt::format("other={}", n.w)});
      if (known) words.push_back("constant=W");
      check({"conv2d_wide", words}, {Target::host(), Target::parse("host,-amx")}, rng);
    }
}

TEST_CASE("matmul_wide by every template") {
  Rng rng(47);
  for (const Numbers n : {Numbers{"u8", "i8"}, {"bf16", "same"}, {"f16", "same"}})
    check({"matmul_wide",
           {"m=37", "n=70", "k=66", fmt::format("type={}", n.x), fmt::format("other={}", n.w)}},
          levels(), rng);
}

TEST_CASE("maps behind a convolution of narrow numbers are computed with it") {
  Rng rng(53);
  for (const char* type : {"u8", "bf16"})
    for (int epilogue = 1; epilogue < (std::string(type) == "u8" ? 3 : kEpilogues); ++epilogue) {
      const Case c{
          "conv2d_wide",
          {"c_in=64", "h=6", "w=20", "c_out=64", "k=3", "pad=1", fmt::format("type={}", type)}};
      const Program program = build_case(c, epilogue);
      const auto inputs = random_inputs(program, rng.next());
      const RefArray expected = run_interpreted(program, inputs);
      INFO(text(c) << ", epilogue " << epilogue);
      for (const char* name : {"host", "host,-amx"}) {
        const Target target = Target::parse(name);
        const NamedTemplate t = templates_for(program, target)[0];
        check_point(program, target, t, survey(t.fn, program, target).default_point(), inputs,
                    expected, 1e-4, true);
      }
    }
}

TEST_CASE("the default of a convolution of narrow numbers is the widest unit that fits it") {
  static constexpr const char* kVectors = "x86-64/avx512,-amx";
  const auto first = [](Words words, const char* target) {
    const KernelEntry& entry = find_kernel("conv2d_wide");
    words.insert(words.end(), {"h=14", "w=14", "k=3", "pad=1"});
    const Program program =
        merge_dimensions(make_program("p", entry.build(parse_kernel_args(entry, words))));
    Target t = Target::parse(target);
    if (!t.has_feature("avx512vnni") && std::string(target) == kVectors) {
      t.features.push_back("avx512vnni");
      std::sort(t.features.begin(), t.features.end());
    }
    return templates_for(program, t)[0].name;
  };
  const Words bytes = {"c_in=64", "c_out=64", "type=u8", "other=i8"};
  CHECK(first(bytes, kVectors) == "conv_dot");
  CHECK(first(bytes, "x86-64/sse2") != "conv_dot");
  CHECK(first({"c_in=62", "c_out=64", "type=u8", "other=i8"}, kVectors) == "conv");
  if (!Target::host().has_feature("amx-int8")) {
    WARN("skipped the matrix unit: this machine has none");
    return;
  }
  CHECK(first(bytes, "host") == "conv_unit");
  CHECK(first({"c_in=60", "c_out=64", "type=u8", "other=i8"}, "host") == "conv_dot");
}

TEST_CASE("bf16 that is no finite number goes through a convolution") {
  const KernelEntry& entry = find_kernel("conv2d_wide");
  const KernelArgs args =
      parse_kernel_args(entry, {"c_in=64", "h=6", "w=16", "c_out=64", "k=3", "pad=1", "type=bf16"});
  const Program program = make_program("p", entry.build(args));
  for (const double special : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    auto inputs = operands(program, 5);
    inputs[0].values[1234] = special;
    const RefArray expected = run_interpreted(program, inputs);
    for (const Target& target : levels()) {
      const Task task("p", program, templates_for(program, target), target);
      CHECK(difference(run_compiled(default_schedule(task).program(), inputs, target), expected,
                       1e-3) == "");
    }
  }
}

TEST_CASE("operators of narrow numbers refuse what they cannot sum") {
  const auto tensors = [](DType x, DType w) {
    return conv2d_wide(input("x", x, {1, 1, 5, 5, 64}), input("w", w, {64, 64, 3, 3}), {}, 64);
  };
  CHECK_NOTHROW(tensors(u8, i8));
  CHECK_THROWS_WITH(tensors(u8, bf16), Catch::Contains("\"x\" is u8, whose sums are i32") &&
                                           Catch::Contains("whose sums are f32"));
  CHECK_THROWS_WITH(
      conv2d_wide(input("x", u8, {1, 1, 5, 5, 64}), input("w", i8, {64, 32, 3, 3}), {.groups = 2},
                  64),
      Catch::Contains("groups are 1; there are 2") && Catch::Contains("conv2d_blocked"));
  CHECK_THROWS_WITH(
      conv2d_wide(input("x", u8, {1, 2, 5, 5, 64}), input("w", i8, {64, 64, 3, 3}), {}, 64),
      Catch::Contains("does not hold 64 channels"));
  CHECK_THROWS_WITH(matmul_wide(input("a", u8, {3, 4}), input("b", f32, {4, 5})),
                    Catch::Contains("they must be equal"));
}
