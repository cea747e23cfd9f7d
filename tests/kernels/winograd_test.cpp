#include "kernels/winograd.h"

#include <fmt/format.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/table.h"
#include "kernels/templates.h"
#include "template_cases.h"

using namespace tenon;
using Words = std::vector<std::string>;

namespace {

/// By which numbers in [-1, 1) may differ between two ways to compute F(m x m, 3 x 3), of 1 + |y|:
/// far below winograd_error_bound(), which no random input comes near.
double tolerance(int64_t m, DType type) {
  return (m == 2 ? 1e-5 : 1e-4) * (type == DType::f64 ? 1e-8 : 1);
}

/// Random inputs, of which U is transformed from random weights: those of a random U would grow.
struct Inputs {
  std::vector<RefArray> all;
  RefArray weights;
};

RefArray rounded(RefArray a, DType type) {
  if (type == DType::f32)
    for (double& v : a.values) v = static_cast<float>(v);
  return a;
}

Inputs inputs_of(const Program& program, int64_t m, int64_t block, int64_t c_out, uint64_t seed) {
  Inputs in;
  in.all = random_inputs(program, seed);
  const int64_t c_in = in.all[1].shape[3];
  in.weights = RefArray({c_out, c_in, 3, 3});
  Rng rng(seed);
  for (double& v : in.weights.values) v = static_cast<float>(rng.real() * 2 - 1);
  in.all[1] = rounded(ref_winograd_weights(in.weights, m, block), program.params[0].buffer->dtype);
  return in;
}

struct WinogradCase {
  int64_t n, c_in, h, w, c_out, m, block, pad;
  DType type = DType::f32;
};

Case kernel_case(const WinogradCase& c) {
  Words words;
  for (const auto& [name, value] : std::vector<std::pair<const char*, int64_t>>{{"n", c.n},
                                                                                {"c_in", c.c_in},
                                                                                {"h", c.h},
                                                                                {"w", c.w},
                                                                                {"c_out", c.c_out},
                                                                                {"tile", c.m},
                                                                                {"block", c.block},
                                                                                {"pad", c.pad}})
    words.push_back(fmt::format("{}={}", name, value));
  words.push_back(fmt::format("type={}", name(c.type)));
  return {"conv2d_winograd", words};
}

/// Odd images, images smaller than a tile, channels that fill no block, borders of 0 to 2.
const std::vector<WinogradCase>& cases() {
  static const std::vector<WinogradCase> list = {
      {1, 20, 9, 17, 35, 4, 16, 1},         {1, 20, 9, 17, 35, 2, 16, 1},
      {2, 32, 7, 7, 48, 2, 16, 1},          {2, 16, 14, 13, 16, 4, 16, 1},
      {1, 5, 3, 2, 40, 4, 16, 1},           {1, 48, 11, 6, 33, 4, 16, 0},
      {1, 17, 5, 21, 16, 2, 16, 2},         {1, 16, 4, 3, 160, 2, 16, 1},
      {1, 12, 9, 10, 20, 4, 8, 1},          {1, 9, 6, 9, 12, 4, 8, 1, DType::f64},
      {3, 8, 5, 5, 8, 2, 8, 1, DType::f64},
  };
  return list;
}

}  // namespace

TEST_CASE("Winograd's template at random points, under epilogues, on every level") {
  Rng rng(23);
  for (const char* level : {"host", "x86-64/avx2", "x86-64/sse2"}) {
    const Target target = std::string(level) == "host" ? Target::host() : Target::parse(level);
    if (!target.runs_on(Target::host())) {
      WARN("skipped for " << level << ": this machine cannot run it");
      continue;
    }
    int epilogue = 0;
    for (const WinogradCase& c : cases()) {
      const Program program = build_case(kernel_case(c), epilogue);
      INFO(text(kernel_case(c)) << ", epilogue " << epilogue);
      epilogue = (epilogue + 1) % kEpilogues;
      const auto in = inputs_of(program, c.m, c.block, c.c_out, rng.next());
      const RefArray expected = run_interpreted(program, in.all);
      const double bound = tolerance(c.m, c.type);
      for (const NamedTemplate& t : templates_for(program, target)) {
        const KnobSpace space = survey(t.fn, program, target);
        check_point(program, target, t, space.default_point(), in.all, expected, bound,
                    std::string(level) == "host");
        check_point(program, target, t, space.random_point(rng), in.all, expected, bound, false);
      }
    }
  }
}

TEST_CASE("Winograd's convolution is the direct one within its bound") {
  Rng rng(29);
  for (const WinogradCase& c : cases()) {
    const Case kernel = kernel_case(c);
    INFO(text(kernel));
    const Program program = build_case(kernel, 0);
    const auto in = inputs_of(program, c.m, c.block, c.c_out, rng.next());
    const RefArray direct =
        ref_blocked(ref_conv(ref_unblocked(in.all[0], c.c_in), in.weights, &in.all[2],
                             {.pads_begin = {c.pad, c.pad}, .pads_end = {c.pad, c.pad}}),
                    c.block);
    const RefArray got = run_compiled(program, in.all);
    REQUIRE(got.shape == direct.shape);
    CHECK(difference(got, direct, tolerance(c.m, c.type)) == "");
    // Numbers are below 1, the bias adds one rounding.
    const double bound = winograd_error_bound(c.m, c.c_in, c.type) + 1e-7;
    double worst = 0;
    for (size_t n = 0; n < got.values.size(); ++n)
      worst = std::max(worst, std::fabs(got.values[n] - direct.values[n]));
    CHECK(worst <= bound);
  }
}

TEST_CASE("the error bound of Winograd's convolution holds where all errors add up") {
  // Inputs and weights of alternating signs, as large as they may be, that cancel in the
  // transforms.
  for (const int64_t m : {2, 4}) {
    const Case kernel = kernel_case({1, 64, 12, 12, 16, m, 16, 1});
    const Program program = build_case(kernel, 0);
    auto in = inputs_of(program, m, 16, 16, 5);
    Rng rng(31);
    for (double& v : in.all[0].values) v = rng.real() < 0.5 ? -1 : 1.0F - 0x1p-24F * 3;
    for (double& v : in.weights.values) v = rng.real() < 0.5 ? -1.0F / 3 : 1;
    for (double& v : in.all[2].values) v = 0;
    in.all[1] = rounded(ref_winograd_weights(in.weights, m, 16), DType::f32);
    const RefArray direct = ref_blocked(ref_conv(ref_unblocked(in.all[0], 64), in.weights, nullptr,
                                                 {.pads_begin = {1, 1}, .pads_end = {1, 1}}),
                                        16);
    const RefArray got = run_compiled(program, in.all);
    double worst = 0;
    for (size_t n = 0; n < got.values.size(); ++n)
      worst = std::max(worst, std::fabs(got.values[n] - direct.values[n]));
    CHECK(worst <= winograd_error_bound(m, 64, DType::f32));
    CHECK(worst > 0);
  }
}

TEST_CASE("NaN and Inf of an input reach the pixels whose tiles read them, no others") {
  for (const int64_t m : {2, 4}) {
    const Program program = build_case(kernel_case({1, 16, 16, 16, 16, m, 16, 1}), 0);
    auto in = inputs_of(program, m, 16, 16, 7);
    for (const double odd : {std::nan(""), static_cast<double>(INFINITY)}) {
      in.all[0][{0, 0, 9, 6, 3}] = odd;
      const RefArray got = run_compiled(program, in.all);
      each_point({16, 16}, [&](const std::vector<int64_t>& at) {
        const auto reads = [&](int64_t pixel, int64_t place) {
          const int64_t first = pixel / m * m - 1;
          return place >= first && place <= first + m + 1;
        };
        const bool reached = reads(at[0], 9) && reads(at[1], 6);
        const bool direct = std::abs(at[0] - 9) <= 1 && std::abs(at[1] - 6) <= 1;
        const double y = got[{0, 0, at[0], at[1], 5}];
        if (direct) CHECK_FALSE(std::isfinite(y));
        if (!reached) CHECK(std::isfinite(y));
      });
    }
  }
}

TEST_CASE("Winograd's weights are G w G', and its shapes are checked") {
  for (const char* tile : {"tile=2", "tile=4"})
    for (const char* block : {"block=16", "block=4"}) {
      const Program program =
          build_case({"winograd_weights", {"c_in=5", "c_out=18", tile, block}}, 0);
      const auto in = random_inputs(program, 3);
      const RefArray expected =
          ref_winograd_weights(in[0], tile[5] - '0', std::string(block) == "block=4" ? 4 : 16);
      for (const NamedTemplate& t : templates_for(program, Target::host())) {
        const KnobSpace space = survey(t.fn, program, Target::host());
        check_point(program, Target::host(), t, space.default_point(), in, expected, 1e-6, true);
      }
    }
  const Tensor w = input("w", f32, {8, 20, 3, 3}), x = input("x", f32, {1, 2, 5, 5, 16});
  CHECK_THROWS_WITH(winograd_weights(w, 3, 16), Catch::Contains("F(2x2,3x3) and F(4x4,3x3)"));
  CHECK_THROWS_WITH(winograd_weights(input("w", f32, {8, 20, 5, 5}), 4, 16),
                    Catch::Contains("kernels of 5 x 5; they are 3 x 3"));
  CHECK_THROWS_WITH(winograd_weights(input("w", f16, {8, 20, 3, 3}), 4, 16),
                    Catch::Contains("need f32 or f64"));
  const Tensor u = winograd_weights(w, 4, 16);
  CHECK_THROWS_WITH(conv2d_winograd(x, u, Tensor(), {}, 40),
                    Catch::Contains("do not fit 40 output channels"));
  CHECK_THROWS_WITH(conv2d_winograd(x, u, Tensor(), {.strides = {2, 2}}, 8),
                    Catch::Contains("strides, dilations and groups are 1"));
  CHECK_THROWS_WITH(conv2d_winograd(x, u, Tensor(), {.groups = 2}, 8),
                    Catch::Contains("strides, dilations and groups are 1"));
  CHECK_THROWS_WITH(conv2d_winograd(x, u, input("b", f32, {9}), {}, 8),
                    Catch::Contains("\"b\" has 9 elements; there are 8 output channels"));
}
