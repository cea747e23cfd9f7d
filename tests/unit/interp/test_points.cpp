#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>

#include "interp/points.h"
#include "run.h"

using namespace tenon;

namespace {

/// Small numbers without a pattern.
Memory numbers(DType t, size_t count) {
  std::vector<double> values(count);
  for (size_t k = 0; k < count; ++k) values[k] = static_cast<double>((k * 7919 + 13) % 31) / 8 - 2;
  return {t, values};
}

/// All elements of the outputs by demand and by the interpreter, over inputs of so many elements.
void check_all_points(const Program& p, const std::vector<size_t>& sizes) {
  std::vector<Memory> memory;
  for (size_t k = 0; k < sizes.size(); ++k) memory.push_back(numbers(f32, sizes[k]));
  for (size_t k = 0; k < p.params.size(); ++k) memory[k].dtype = p.params[k].buffer->dtype;
  std::vector<HostBuffer> args;
  for (Memory& m : memory) args.push_back({m.bytes.data()});
  PointOracle oracle(p, args);
  std::vector<std::vector<double>> points(p.params.size());
  for (size_t k = 0; k < p.params.size(); ++k) {
    if (p.params[k].role != ParamRole::output) continue;
    for (size_t e = sizes[k]; e-- > 0;)
      points[k].push_back(oracle.at(k, static_cast<int64_t>(e)).value());
    std::reverse(points[k].begin(), points[k].end());
  }
  interpret(p, args);
  for (size_t k = 0; k < p.params.size(); ++k) {
    if (p.params[k].role == ParamRole::output) CHECK(points[k] == memory[k].all());
  }
}

Program matmul(int64_t n) {
  const Tensor a = input("A", f32, {n, n}), b = input("B", f32, {n, n});
  const Axis i("i", n), j("j", n), k("k", n);
  return make_program("matmul", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))});
}

}  // namespace

TEST_CASE("elements of a product, one by one") { check_all_points(matmul(5), {25, 25, 25}); }

TEST_CASE("elements that need other stages") {
  // A row's soft maximum: two reductions and two maps, axes used by several stages.
  const Tensor x = input("X", f32, {3, 7});
  const Axis r("r", 3), c("c", 7), k("k", 7);
  const Tensor top = compute("M", {r}, reduce_max(x(r, k), {k}));
  const Tensor e = compute("E", {r, c}, exp(x(r, c) - top(r)));
  const Tensor total = compute("S", {r}, sum(e(r, k), k));
  check_all_points(make_program("softmax", {compute("Y", {r, c}, e(r, c) / total(r))}), {21, 21});
}

TEST_CASE("elements between which padding lies") {
  const Tensor x = input("X", f32, {6});
  const Axis y("y", 8), p("p", 6), u("u", 3);
  const Tensor pad =
      compute("P", {y}, select(Expr(y) >= 1 && Expr(y) < 7, x(Expr(y) - 1), float_imm(0)));
  check_all_points(make_program("window", {compute("C", {p}, sum(pad(Expr(p) + Expr(u)), u))}),
                   {6, 6});
}

TEST_CASE("elements of a scan") {
  const Tensor x = input("X", f32, {2, 9});
  const Axis i("i", 2), t("t", 9);
  const Tensor sums = scan("S", {i, t}, t, x(i, t), [&](Expr before) { return before + x(i, t); });
  check_all_points(make_program("sums", {sums}), {18, 18});
}

TEST_CASE("points cost what they need, and end where the limit is") {
  Memory a = numbers(f32, 64 * 64), b = numbers(f32, 64 * 64);
  const std::vector<HostBuffer> args = {{a.bytes.data()}, {b.bytes.data()}, {nullptr}};
  PointOptions options;
  options.max_steps = 200;
  PointOracle oracle(matmul(64), args, options);
  CHECK(oracle.at(2, 63).has_value());
  CHECK(oracle.steps() == 65);
  CHECK(oracle.at(2, 63).has_value());  // remembered
  CHECK(oracle.steps() == 65);
  CHECK(oracle.at(2, 64 * 63).has_value());
  CHECK(oracle.at(2, 64 * 64 - 1).has_value());
  CHECK_FALSE(oracle.at(2, 5).has_value());
  CHECK_THROWS_WITH(oracle.at(0, 0), Catch::Contains("A is no output"));
}
