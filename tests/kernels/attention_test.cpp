#include <fmt/format.h>
#include <tenon/support/rng.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/fused_products.h"
#include "kernels/table.h"
#include "kernels/templates.h"
#include "run_kernel.h"
#include "template_cases.h"

using namespace tenon;
using Words = std::vector<std::string>;

namespace {

constexpr double kInf = INFINITY;

Program attention_of(const Words& words) { return build_case({"attention", words}, 0); }

FusedProducts parts(const Words& words) {
  const auto f = find_fused_products(attention_of(words));
  REQUIRE(f);
  return *f;
}

/// The default schedule of the template, compiled for each level of target that runs here.
void check_levels(const Program& program, const std::vector<RefArray>& inputs,
                  const RefArray& expected, double bound) {
  for (const char* name : {"host", "x86-64/avx2", "x86-64/sse2"}) {
    const Target target = Target::parse(name);
    if (!target.runs_on(Target::host())) continue;
    const NamedTemplate t = templates_for(program, target)[0];
    REQUIRE(t.name == "attention");
    check_point(program, target, t, survey(t.fn, program, target).default_point(), inputs, expected,
                bound, false);
  }
}

void check_attention(const Words& words) {
  INFO(text({"attention", words}));
  const KernelEntry& entry = find_kernel("attention");
  const KernelArgs args = parse_kernel_args(entry, words);
  const auto inputs = random_inputs(make_program("p", entry.build(args)), 7);
  check_levels(attention_of(words), inputs, entry.reference(args, inputs), 1e-5);
}

}  // namespace

TEST_CASE("attention over odd shapes, with masks, on every level of target") {
  for (const auto& [q, kv, d] : {std::tuple{1, 1, 1},
                                 {1, 130, 40},
                                 {3, 37, 17},
                                 {17, 1, 64},
                                 {37, 29, 20},
                                 {64, 1000, 40},
                                 {130, 7, 3},
                                 {16, 16, 32}})
    for (const char* mask : {"none", "causal", "add"})
      for (const char* keys : {"rows", "columns"}) {
        const Words words = {"heads=2",
                             fmt::format("q={}", q),
                             fmt::format("kv={}", kv),
                             fmt::format("d={}", d),
                             fmt::format("mask={}", mask),
                             fmt::format("keys={}", keys)};
        if (std::string(mask) == "causal" && q > kv) continue;  // rows that see no key
        check_attention(words);
      }
}

TEST_CASE("online softmax over tiles of keys, whole or not, on every level of target") {
  for (const auto& [q, kv, d, tile] : {std::tuple{1, 130, 40, 16},
                                       {3, 37, 17, 5},
                                       {37, 96, 20, 32},
                                       {20, 50, 33, 48},
                                       {70, 19, 8, 1},
                                       {16, 64, 32, 63}})
    for (const char* mask : {"none", "causal", "add"})
      for (const char* keys : {"rows", "columns"}) {
        const Words words = {"heads=2",
                             fmt::format("q={}", q),
                             fmt::format("kv={}", kv),
                             fmt::format("d={}", d),
                             fmt::format("tile={}", tile),
                             fmt::format("mask={}", mask),
                             fmt::format("keys={}", keys)};
        if (std::string(mask) == "causal" && q > kv) continue;  // rows that see no key
        check_attention(words);
      }
}

TEST_CASE("rows are folded tile by tile where their scores would fill the second cache") {
  const auto folds = [](int64_t q, int64_t kv, int64_t tile) {
    const Words words = {"heads=1", fmt::format("q={}", q), fmt::format("kv={}", kv), "d=8",
                         fmt::format("tile={}", tile)};
    return !parts(words).fold.empty();
  };
  CHECK_FALSE(folds(128, 2048, 0));
  CHECK(folds(128, 2049, 0));
  CHECK_FALSE(folds(1, 8192, 0));
  CHECK_FALSE(folds(128, 4000, 4000));
  CHECK(folds(128, 128, 64));
  const FusedProducts f = parts({"heads=2", "q=37", "kv=100", "d=20", "tile=30"});
  CHECK(f.fold == "Y.fold");
  CHECK(f.tiles.extent == 4);
  CHECK(f.second.reduce[0].extent == 30);
}

TEST_CASE("online softmax stays within the bound of its formula") {
  const Words words = {"heads=1", "q=9", "kv=200", "d=8", "tile=8"};
  const KernelEntry& entry = find_kernel("attention");
  const KernelArgs args = parse_kernel_args(entry, words);
  const Program program = make_program("p", entry.build(args));
  auto in = random_inputs(program, 21);
  for (double& x : in[0].values) x *= 12;  // logits far apart, their maximum in any tile
  const RefArray expected = entry.reference(args, in), got = run_interpreted(program, in);
  const double u = std::ldexp(1.0, -24), scale = 1 / std::sqrt(8.0);
  for (int64_t i = 0; i < 9; ++i) {
    double top = -kInf, low = kInf, rounding = 0;
    std::vector<double> logits(200);
    for (int64_t j = 0; j < 200; ++j) {
      double magnitude = 0;
      for (int64_t c = 0; c < 8; ++c) {
        const double term = in[0][{0, i, c}] * in[1][{0, j, c}] * scale;
        logits[static_cast<size_t>(j)] += term;
        magnitude += std::fabs(term);
      }
      rounding = std::max(rounding, (8 + 2) * u * magnitude);
      top = std::max(top, logits[static_cast<size_t>(j)]);
      low = std::min(low, logits[static_cast<size_t>(j)]);
    }
    // Scores, the tile's sums of 8, 25 tiles folded, exponentials of 4 ulp; of numerator and
    // denominator both.
    const double relative = 2 * (rounding + u * (8 + 6 * 25 + 2 * (top - low) + 8));
    for (int64_t c = 0; c < 8; ++c) {
      double total = 0, weight = 0;
      for (int64_t j = 0; j < 200; ++j) {
        const double e = std::exp(logits[static_cast<size_t>(j)] - top);
        total += e;
        weight += e * std::fabs(in[2][{0, j, c}]);
      }
      CHECK(std::fabs(got[{0, i, c}] - expected[{0, i, c}]) <= relative * weight / total);
    }
  }
}

TEST_CASE("leading dimensions of queries, keys, values and masks broadcast") {
  const Tensor q = input("Q", f32, {2, 3, 5, 8}), k = input("K", f32, {2, 1, 7, 8}),
               v = input("V", f32, {7, 4}), mask = input("M", f32, {2, 1, 1, 7});
  const Program p = make_program("p", {attention(q, k, v, mask, {.scale = 0.5})});
  const auto in = random_inputs(p, 3);
  RefArray expected({2, 3, 5, 4});
  each_point({2, 3, 5}, [&](const std::vector<int64_t>& at) {
    std::vector<double> e(7);
    double total = 0;
    for (int64_t j = 0; j < 7; ++j) {
      double score = in[2][{at[0], 0, 0, j}];
      for (int64_t c = 0; c < 8; ++c)
        score += 0.5 * in[0][{at[0], at[1], at[2], c}] * in[1][{at[0], 0, j, c}];
      total += e[static_cast<size_t>(j)] = std::exp(score);
    }
    for (int64_t j = 0; j < 7; ++j)
      for (int64_t c = 0; c < 4; ++c)
        expected[{at[0], at[1], at[2], c}] += e[static_cast<size_t>(j)] / total * in[3][{j, c}];
  });
  CHECK(difference(run_interpreted(p, in), expected, 1e-5) == "");
  check_levels(p, in, expected, 1e-5);
}

TEST_CASE("masked keys, NaN and Inf in attention") {
  const std::string tile = GENERATE("tile=0", "tile=4");
  const Words words = {"heads=1", "q=37", "kv=20", "d=16", "mask=add", tile};
  const Program program = attention_of(words);
  auto in = random_inputs(program, 5);
  RefArray& mask = in[2];
  for (int64_t i = 0; i < 37; ++i)
    for (int64_t j = 0; j < 20; ++j)
      mask.values[static_cast<size_t>(i * 20 + j)] = (i + j) % 3 ? 0 : -kInf;
  for (int64_t j = 0; j < 20; ++j) mask.values[static_cast<size_t>(5 * 20 + j)] = -kInf;
  // Rows whose first tile is masked, or all but the last.
  for (int64_t i : {11, 12})
    for (int64_t j = 0; j < (i == 11 ? 4 : 16); ++j)
      mask.values[static_cast<size_t>(i * 20 + j)] = -kInf;
  in[0].values[7 * 16 + 3] = NAN;
  in[0].values[9 * 16] = kInf;
  const KernelEntry& entry = find_kernel("attention");
  const RefArray expected = entry.reference(parse_kernel_args(entry, words), in);
  for (int64_t i : {5, 7, 9}) CHECK(std::isnan(expected.values[static_cast<size_t>(i * 16)]));
  for (int64_t i : {6, 11, 12})
    CHECK_FALSE(std::isnan(expected.values[static_cast<size_t>(i * 16)]));
  CHECK(difference(run_interpreted(program, in), expected, 1e-5) == "");
  check_levels(program, in, expected, 1e-5);
}

TEST_CASE("large scores do not overflow") {
  const std::string tile = GENERATE("tile=0", "tile=16");
  const Words words = {"heads=1", "q=20", "kv=40", "d=4", tile};
  const Program program = attention_of(words);
  auto in = random_inputs(program, 9);
  for (double& x : in[0].values) x *= 1000;
  const KernelEntry& entry = find_kernel("attention");
  check_levels(program, in, entry.reference(parse_kernel_args(entry, words), in), 1e-3);
}

TEST_CASE("what is a pair of fused products and what is not") {
  const FusedProducts f = parts({"heads=2", "q=37", "kv=29", "d=20", "mask=add"});
  CHECK(f.first.stage == "Y.scores");
  CHECK(f.second.stage == "Y.weighted");
  std::vector<std::string> names;
  for (const FusedStage& s : f.between) names.push_back(s.name);
  CHECK(names == std::vector<std::string>{"Y.query", "Y.scores", "Y.logits", "Y.max", "Y.exp",
                                          "Y.sum", "Y.inverse"});
  CHECK(f.between[0].across);
  CHECK(f.between[2].across);
  CHECK_FALSE(f.between[4].across);
  CHECK_FALSE(find_fused_products(build_case({"softmax", {"rows=7", "columns=9"}}, 0)));
  CHECK_FALSE(find_fused_products(build_case({"matmul", {"m=7", "n=9", "k=5"}}, 0)));
  CHECK_FALSE(find_fused_products(build_case({"layer_norm", {"rows=7", "columns=9"}}, 0)));
  // The second product sums over the rows of the first: a block of rows is not all it needs.
  const Tensor a = input("A", f32, {7, 5}), b = input("B", f32, {5, 9}),
               c = input("C", f32, {7, 3});
  const Axis i("i", 7), j("j", 9), k("k", 5), x("x", 9), y("y", 3), r("r", 7);
  const Tensor first = compute("first", {i, j}, sum(a(i, k) * b(k, j), k));
  CHECK_FALSE(find_fused_products(
      make_program("p", {compute("second", {x, y}, sum(first(r, x) * c(r, y), r))})));
}

TEST_CASE("tiles of attention: rows in the lanes where there are enough, dot products for few") {
  Target target = Target::parse("x86-64/avx512");
  target.cores = 1;
  const FusedTiles many = best_tiles(parts({"heads=12", "q=128", "kv=128", "d=64"}), target);
  CHECK(many.rows_in_lanes);
  CHECK(registers_used({many.keys, 1, many.vectors}) <= registers_free(target));
  CHECK(registers_used({many.rows, 1, many.value_vectors}) <= registers_free(target));
  CHECK(many.block(16) % many.rows == 0);
  const FusedTiles one = best_tiles(parts({"heads=8", "q=1", "kv=512", "d=64"}), target);
  CHECK_FALSE(one.rows_in_lanes);
  CHECK(one.rows == 1);
  CHECK(one.value_vectors == 4);
}

TEST_CASE("attention refuses operands that do not fit") {
  const Tensor q = input("Q", f32, {2, 5, 8}), k = input("K", f32, {2, 7, 8}),
               v = input("V", f32, {2, 7, 4});
  const auto t = [](std::vector<int64_t> shape, DType type = f32) {
    return input("X", type, shape);
  };
  using Catch::Contains;
  CHECK_THROWS_WITH(attention(q, t({2, 7, 9}), v, Tensor()),
                    Contains("queries of 8 elements") && Contains("keys of 9"));
  CHECK_THROWS_WITH(attention(q, k, t({2, 6, 4}), Tensor()),
                    Contains("7 keys") && Contains("6 values"));
  CHECK_THROWS_WITH(attention(q, k, t({7}), Tensor()), Contains("needs at least two dimensions"));
  CHECK_THROWS_WITH(attention(q, k, v, t({5, 6})), Contains("cannot be broadcast"));
  CHECK_THROWS_WITH(attention(q, k, v, t({3, 1, 5, 7})), Contains("does not broadcast"));
  CHECK_THROWS_WITH(attention(t({2, 5, 8}, i32), k, v, Tensor()), Contains("float"));
  CHECK_THROWS_WITH(attention(q, k, t({3, 7, 4}), Tensor()), Contains("broadcast"));
  CHECK_THROWS_WITH(attention(q, k, v, Tensor(), {.tile = -1}), Contains("a tile of -1 keys"));
}
