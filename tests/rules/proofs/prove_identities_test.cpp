#include <fmt/format.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <iostream>

#include "arith/simplify.h"
#include "solver.h"

// What simplify does to index arithmetic, held against Z3: the identities of case D37, the
// statements that look like them and are false, and random expressions before and after.

using namespace tenon;

namespace {

constexpr unsigned kLimit_ms = 2000;

const Var x("x"), y("y");

struct Identity {
  Expr left, right;
  Interval y = Interval::all();
};

Expr over(const Expr& a, int64_t b) { return floor_div(a, int_imm(b)); }
Expr rest(const Expr& a, int64_t b) { return floor_mod(a, int_imm(b)); }

std::vector<Identity> true_ones() {
  const Expr X = x, Y = y;
  return {{over(over(X, 2), 3), over(X, 6)},          {over(over(X, 2) + 1, 3), over(X + 2, 6)},
          {over(X * 8 + 7, 16), over(X, 2)},          {over(X * 8 - 9, 16), over(X, 2) - 1},
          {over(X * 4 + Y, 2), X * 2 + over(Y, 2)},   {over(X * 4 + Y, 8), over(X, 2), {0, 3}},
          {over(X, 4) * 4 + rest(X, 4), X},           {rest(rest(X, 12), 4), rest(X, 4)},
          {over(rest(X, 12), 4), rest(over(X, 4), 3)}};
}

std::vector<Identity> false_ones() {
  const Expr X = x, Y = y;
  return {{over(X * 8 - 1, 16), over(X, 2)},
          {over(X * 4 + Y, 8), over(X, 2), {0, 4}},
          {rest(rest(X, 10), 4), rest(X, 4)},
          {over(-X, 4), -over(X, 4)}};
}

void assume_range(Translator& to, const Var& v, const Interval& range) {
  if (range.min) to.assume(to.variable(v) >= to.number(*range.min));
  if (range.max) to.assume(to.variable(v) <= to.number(*range.max));
}

Verdict prove_equal(const Expr& a, const Expr& b, const VarRanges& ranges,
                    std::string* counterexample = nullptr) {
  z3::context context;
  Translator to(context, 0, true);
  for (const Var& v : free_vars(a)) {
    auto at = ranges.find(v);
    if (at != ranges.end()) assume_range(to, v, at->second);
  }
  const z3::expr left = to(a);
  to.stop_assuming_divisors();
  const z3::expr right = to(b);
  const Verdict v = to.prove(left == right, kLimit_ms);
  if (counterexample) *counterexample = to.counterexample();
  return v;
}

/// Quotients, remainders, sums, minima and comparisons of variables with ranges.
Expr random_index(const std::vector<Var>& vars, Rng& rng, int depth) {
  if (depth == 0 || rng.chance(0.2)) {
    if (rng.chance(0.2)) return int_imm(rng.between(-20, 20));
    return vars[static_cast<size_t>(rng.below(static_cast<int64_t>(vars.size())))];
  }
  const Expr a = random_index(vars, rng, depth - 1);
  switch (rng.below(8)) {
    case 0:
      return a + random_index(vars, rng, depth - 1);
    case 1:
      return a - random_index(vars, rng, depth - 1);
    case 2:
    case 3:
      return a * int_imm(rng.between(-6, 12));
    case 4:
      return over(a, rng.between(1, 12));
    case 5:
      return rest(a, rng.between(1, 12));
    case 6:
      return min(a, random_index(vars, rng, depth - 1));
    default:
      return max(a, random_index(vars, rng, depth - 1));
  }
}

}  // namespace

TEST_CASE("D37 the identities are theorems and simplify knows them") {
  for (const Identity& i : true_ones()) {
    const VarRanges ranges = {{y, i.y}};
    INFO(print(i.left) << " == " << print(i.right));
    CHECK(prove_equal(i.left, i.right, ranges) == Verdict::proved);
    CHECK(prove_equal(i.left, simplify(i.left, ranges), ranges) == Verdict::proved);
    CHECK(prove_equal(i.right, simplify(i.right, ranges), ranges) == Verdict::proved);
    CHECK(prove(i.left == i.right, ranges));
  }
}

TEST_CASE("D37 what looks like an identity and is none is refuted and never produced") {
  for (const Identity& i : false_ones()) {
    const VarRanges ranges = {{y, i.y}};
    INFO(print(i.left) << " == " << print(i.right));
    CHECK(prove_equal(i.left, i.right, ranges) == Verdict::refuted);
    CHECK_FALSE(prove(i.left == i.right, ranges));
    CHECK_FALSE(structural_equal(simplify(i.left, ranges), simplify(i.right, ranges)));
    CHECK(prove_equal(i.left, simplify(i.left, ranges), ranges) == Verdict::proved);
    CHECK(prove_equal(i.right, simplify(i.right, ranges), ranges) == Verdict::proved);
  }
}

TEST_CASE("simplified index arithmetic is proved equal to what it came from") {
  Rng rng(20261130);
  const std::vector<Var> vars = {x, y, Var("z")};
  int64_t proved = 0, unknown = 0;
  for (int n = 0; n < 400; ++n) {
    VarRanges ranges;
    for (const Var& v : vars) {
      const int64_t low = rng.between(-3, 3) * 8;
      ranges[v] = {low, low + rng.between(0, 40)};
    }
    const Expr before = random_index(vars, rng, 4), after = simplify(before, ranges);
    std::string counterexample;
    const Verdict v = prove_equal(before, after, ranges, &counterexample);
    INFO(print(before) << "  ->  " << print(after) << "\n" << counterexample);
    CHECK(v != Verdict::refuted);
    proved += v == Verdict::proved;
    unknown += v == Verdict::unknown;
  }
  std::cout << fmt::format(
      "rules: {} of 400 random index expressions proved equal to their simplified form, {} not "
      "decided in {} ms\n",
      proved, unknown, kLimit_ms);
  CHECK(proved >= 360);
}
