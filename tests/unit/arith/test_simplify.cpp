#include <tenon/ir/program.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "arith/simplify.h"
#include "tests/unit/arith/evaluate.h"

using namespace tenon;

namespace {

Var x("x"), y("y"), z("z");
const Expr X = x, Y = y, Z = z;

std::string simple(const Expr& e, const VarRanges& ranges = {}) {
  return print(simplify(e, ranges));
}

/// Before and after agree for all x in -60..60 and y in -13..13 (or as given).
bool equal_everywhere(const Expr& a, const Expr& b, Interval xs = {-60, 60},
                      Interval ys = {-13, 13}) {
  for (int64_t i = *xs.min; i <= *xs.max; ++i) {
    for (int64_t j = *ys.min; j <= *ys.max; ++j) {
      Valuation at{{x.get(), i}, {y.get(), j}};
      if (evaluate(a, at) != evaluate(b, at)) return false;
    }
  }
  return true;
}

struct Claim {
  Expr left, right;
  Interval ys = {-13, 13};
};

/// Random i64 expression over x, y, z, with constants that share factors.
Expr random_index(Rng& rng, int depth) {
  static const int64_t kConstants[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, -1, -4, 5, 7};
  auto constant = [&] { return int_imm(kConstants[rng.below(13)]); };
  if (depth == 0) {
    const Expr leaves[] = {X, Y, Z, constant()};
    return leaves[rng.below(4)];
  }
  auto sub = [&] {
    return random_index(rng, depth - 1 - static_cast<int>(rng.below(2) && depth > 1));
  };
  Expr divisor =
      int_imm(std::vector<int64_t>{1, 2, 3, 4, 6, 8, 12, 16}[static_cast<size_t>(rng.below(8))]);
  switch (rng.below(10)) {
    case 0:
    case 1:
      return make_expr({i64, 1}, Binary{BinaryOp::add, sub(), sub()});
    case 2:
      return make_expr({i64, 1}, Binary{BinaryOp::sub, sub(), sub()});
    case 3:
    case 4:
      return make_expr({i64, 1}, Binary{BinaryOp::mul, sub(), constant()});
    case 5:
      return make_expr({i64, 1}, Binary{BinaryOp::floor_div, sub(), divisor});
    case 6:
      return make_expr({i64, 1}, Binary{BinaryOp::floor_mod, sub(), divisor});
    case 7:
      return make_expr({i64, 1},
                       Binary{rng.chance(0.5) ? BinaryOp::min : BinaryOp::max, sub(), sub()});
    case 8:
      return make_expr({i64, 1}, Binary{rng.chance(0.5) ? BinaryOp::trunc_div : BinaryOp::trunc_mod,
                                        sub(), divisor});
    default: {
      auto op = static_cast<BinaryOp>(static_cast<int>(BinaryOp::eq) + rng.below(6));
      Expr condition = make_expr({boolean, 1}, Binary{op, sub(), sub()});
      return make_expr({i64, 1}, Select{condition, sub(), sub()});
    }
  }
}

Interval random_range(Rng& rng) {
  int64_t low = rng.chance(0.6) ? 0 : rng.between(-9, 4);
  return {low, low + rng.below(rng.chance(0.3) ? 4 : 17)};
}

}  // namespace

TEST_CASE("D37: claims about // and % that hold are found, by brute force and by proof") {
  const Claim claims[] = {
      {floor_div(floor_div(X, 2), 3), floor_div(X, 6)},
      {floor_div(floor_div(X, 2) + 1, 3), floor_div(X + 2, 6)},
      {floor_div(8 * X + 7, 16), floor_div(X, 2)},
      {floor_div(8 * X - 9, 16), floor_div(X, 2) - 1},
      {floor_div(4 * X + Y, 2), 2 * X + floor_div(Y, 2)},
      {floor_div(4 * X + Y, 8), floor_div(X, 2), {0, 3}},
      {floor_div(X, 4) * 4 + floor_mod(X, 4), X},
      {floor_mod(floor_mod(X, 12), 4), floor_mod(X, 4)},
      {floor_div(floor_mod(X, 12), 4), floor_mod(floor_div(X, 4), 3)},
  };
  for (const Claim& c : claims) {
    INFO(print(c.left) << " == " << print(c.right));
    VarRanges ranges{{x, {-60, 60}}, {y, c.ys}};
    CHECK(equal_everywhere(c.left, c.right, {-60, 60}, c.ys));
    CHECK(equal_everywhere(c.left, simplify(c.left, ranges), {-60, 60}, c.ys));
    CHECK(equal_everywhere(c.right, simplify(c.right, ranges), {-60, 60}, c.ys));
    CHECK(prove(c.left == c.right, ranges));
  }
}

TEST_CASE("D37: claims that do not hold are never proved") {
  const Claim claims[] = {
      {floor_div(8 * X - 1, 16), floor_div(X, 2)},
      {floor_div(4 * X + Y, 8), floor_div(X, 2), {0, 4}},
      {floor_mod(floor_mod(X, 10), 4), floor_mod(X, 4)},
      {floor_div(-X, 4), -floor_div(X, 4)},
  };
  for (const Claim& c : claims) {
    INFO(print(c.left) << " == " << print(c.right));
    VarRanges ranges{{x, {-60, 60}}, {y, c.ys}};
    CHECK_FALSE(equal_everywhere(c.left, c.right, {-60, 60}, c.ys));
    CHECK(equal_everywhere(c.left, simplify(c.left, ranges), {-60, 60}, c.ys));
    CHECK_FALSE(prove(c.left == c.right, ranges));
  }
}

TEST_CASE("what lowering makes comes out simple") {
  Var jo("jo"), ji("ji"), f("f"), io("io"), ii("ii");
  VarRanges r{{jo, {0, 15}}, {ji, {0, 63}}, {f, {0, 119}}, {io, {0, 169}}, {ii, {0, 5}}};
  Expr j = Expr(jo) * 64 + Expr(ji);
  CHECK(simplify(floor_div(j, 64), r).same_as(simplify(jo, r)) == false);
  CHECK(simple(floor_div(j, 64), r) == "jo");
  CHECK(simple(floor_mod(j, 64), r) == "ji");
  CHECK(simple(floor_div(j, 64) * 64 + floor_mod(j, 64), r) == "jo * 64 + ji");
  CHECK(simple(floor_div(f, 6) * 6 + floor_mod(f, 6), r) == "f");
  CHECK(simple(floor_div(f, 12) * 12 + floor_mod(floor_div(f, 4), 3) * 4 + floor_mod(f, 4), r) ==
        "f");
  CHECK(simple((X + Y) * 3 - X * 2 + 4 - Y * 3) == "x + 4");
  CHECK(simple(X * 2 * Y - Y * X) != "0");
  CHECK(simple(22 - X) == "22 - x");
  CHECK(simple(Y - X - Y) == "-x");
  CHECK(simple(min(X * 4 + 3, X * 4)) == "x * 4");
  CHECK(simple(max(min(Expr(ii) + 8, 4), 0), r) == "4");
  CHECK(simple(min(Expr(io) * 6 + 6, 1017) - Expr(io) * 6, r) == "min(io * 6 + 6, 1017) - io * 6");
  CHECK(print(bounds(min(Expr(io) * 6 + 6, 1017) - Expr(io) * 6, r)) == "[3, 6]");
  CHECK(simple(select(Expr(ii) < 6, X, Y), r) == "x");
  CHECK(simple(Expr(ii) >= 6, r) == "false");
}

TEST_CASE("guards are decided by ranges, and reduced when they are not") {
  Var io("io"), ii("ii");
  Expr i = Expr(io) * 6 + Expr(ii);
  VarRanges whole{{io, {0, 169}}, {ii, {0, 5}}}, partial{{io, {0, 170}}, {ii, {0, 5}}};
  CHECK(prove(i < Expr(1020), whole));
  CHECK_FALSE(prove(i < Expr(1020), partial));
  CHECK(simple(i < Expr(1020), partial) == "io < 170");
  CHECK(simple(i < Expr(1024), partial) == "io * 6 + ii < 1024");
  CHECK(simple(Expr(6) <= i, whole) == "1 <= io");
  CHECK(simple(i + 3 < i + X) == "3 < x");
  CHECK(simple(X * 2 == Y * 4 + 1) == "false");
  CHECK(simple((X < Y) && (Y < Y)) == "false");
  CHECK(prove(Expr(), {}));
}

TEST_CASE("vector comparisons are decided over their lanes") {
  Var t("t");
  VarRanges r{{t, {0, 3}}};
  Expr lanes = ramp(Expr(t) * 8, 1, 8);
  CHECK(prove(lanes < broadcast(Expr(32), 8), r));
  CHECK_FALSE(prove(lanes < broadcast(Expr(31), 8), r));
  CHECK(prove(broadcast(Expr(t) * 8, 8) <= lanes, r));
  CHECK(simple(broadcast(Expr(40), 8) <= lanes, r) == "broadcast(false, 8)");
}

TEST_CASE("data of unknown size is not taken for an index") {
  Buffer A("A", i64, {8});
  Expr a = load(A, {X});
  for (const Expr& e : {a + 1 > a, floor_div(a * 4, 4), floor_div(a * 8 + 7, 16)}) {
    INFO(print(e));
    CHECK_FALSE(is_true(simplify(e)));
    CHECK_FALSE(structural_equal(simplify(e), a));
  }
  Expr clipped = max(min(a, 100), 0);
  CHECK(print(bounds(clipped)) == "[0, 100]");
  CHECK(structural_equal(simplify(floor_div(clipped * 4, 4)), clipped));
}

TEST_CASE("small integers wrap, and bounds know it") {
  Var u("u", {u8, 1}), s("s", {i8, 1});
  CHECK(print(bounds(Expr(u) + 10)) == "[0, 255]");
  CHECK(print(bounds(cast(i64, Expr(u)) + 10)) == "[10, 265]");
  CHECK_FALSE(prove(Expr(s) + 1 > Expr(s)));
  CHECK(prove(cast(i64, Expr(u)) < Expr(256)));
  CHECK(simple(cast(i64, Expr(s)) < Expr(127)) == "i64(s) < 127");
}

TEST_CASE("floats inside indices stay as they are, and indices inside floats are simplified") {
  Buffer A("A", f32, {64});
  Expr e = load(A, {X + 0 + X - X}) * 0.0;
  CHECK(simple(e) == "A[x] * 0.0");
}

TEST_CASE("simplify is exact, idempotent and keeps the pointer of what is simple") {
  constexpr uint64_t kSeed = 7;
  INFO("seed " << kSeed);
  Rng rng(kSeed);
  for (int round = 0; round < 4000; ++round) {
    VarRanges ranges{{x, random_range(rng)}, {y, random_range(rng)}, {z, random_range(rng)}};
    Expr e = random_index(rng, 1 + static_cast<int>(rng.below(5)));
    Simplifier simplifier(ranges);
    Expr s = simplifier.simplify(e);
    Interval range = simplifier.bounds(e);
    INFO("round " << round << ": " << print(e) << "  ->  " << print(s) << " in " << print(range)
                  << " with x " << print(ranges[x]) << ", y " << print(ranges[y]) << ", z "
                  << print(ranges[z]));
    Expr again = simplify(s, ranges);
    if (!again.same_as(s)) {
      CHECK(print(again) == print(s));
      CHECK(again.same_as(s));
    }
    for (int trial = 0; trial < 30; ++trial) {
      Valuation at;
      for (const Var& v : {x, y, z}) at[v.get()] = rng.between(*ranges[v].min, *ranges[v].max);
      int64_t expected = evaluate(e, at);
      bool inside =
          (!range.min || *range.min <= expected) && (!range.max || *range.max >= expected);
      if (evaluate(s, at) != expected || !inside) {
        CHECK(evaluate(s, at) == expected);
        CHECK(inside);
        break;
      }
    }
  }
}

TEST_CASE("comparisons of random index expressions keep their truth") {
  constexpr uint64_t kSeed = 11;
  INFO("seed " << kSeed);
  Rng rng(kSeed);
  for (int round = 0; round < 2000; ++round) {
    VarRanges ranges{{x, random_range(rng)}, {y, random_range(rng)}, {z, random_range(rng)}};
    auto op = static_cast<BinaryOp>(static_cast<int>(BinaryOp::eq) + rng.below(6));
    Expr e = make_expr({boolean, 1}, Binary{op, random_index(rng, 2), random_index(rng, 2)});
    Expr s = simplify(e, ranges);
    INFO("round " << round << ": " << print(e) << "  ->  " << print(s) << " with x "
                  << print(ranges[x]) << ", y " << print(ranges[y]) << ", z " << print(ranges[z]));
    CHECK(simplify(s, ranges).same_as(s));
    for (int trial = 0; trial < 30; ++trial) {
      Valuation at;
      for (const Var& v : {x, y, z}) at[v.get()] = rng.between(*ranges[v].min, *ranges[v].max);
      if (evaluate(s, at) == evaluate(e, at)) continue;
      CHECK(evaluate(s, at) == evaluate(e, at));
      break;
    }
  }
}

TEST_CASE("sharing keeps deep graphs cheap") {
  Expr e = X;
  for (int k = 0; k < 40; ++k) e = e + e;
  CHECK(simple(e) == "x * 1099511627776");
  Expr m = X;
  for (int k = 0; k < 60; ++k) m = min(m, Y) + max(m, Y);
  auto start = std::chrono::steady_clock::now();
  simplify(m);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 2.0);
}

TEST_CASE("a read that a select guards stays guarded") {
  const Buffer flags("flags", boolean, {8});
  const Expr read = load(flags, {X}), inside = X < Expr(8);
  CHECK(simplify(select(inside, read, bool_imm(false))).as<Select>());
  CHECK(simplify(select(inside, bool_imm(true), read)).as<Select>());
  const Expr other = Y < Expr(3);
  CHECK(simplify(select(inside, other, bool_imm(false))).as<Binary>());
}

TEST_CASE("a simplifier that learns a new range forgets what it concluded") {
  Simplifier s;
  s.set_range(x, {0, 3});
  CHECK(s.prove(X < Expr(4)));
  Expr e = X < Expr(4);
  CHECK(s.prove(e));
  s.set_range(x, {0, 4});
  CHECK_FALSE(s.prove(e));
}
