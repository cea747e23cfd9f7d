#include <tenon/ir/program.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>

#include "arith/region.h"
#include "tests/unit/arith/evaluate.h"

using namespace tenon;

namespace {

Var o("o"), p("p"), i("i"), j("j");
const Expr O = o, P = p, I = i, J = j;

std::string text(const std::optional<DimRegion>& r) {
  return r ? print(r->min) + " +" + std::to_string(r->extent) : "nothing";
}

std::string region(const Expr& index, const VarRanges& inner, const VarRanges& outer = {}) {
  Simplifier facts(outer);
  return text(region_of(index, inner, facts));
}

std::string united(const Expr& a, const Expr& b, const VarRanges& inner,
                   const VarRanges& outer = {}) {
  Simplifier facts(outer);
  return text(unite(*region_of(a, inner, facts), *region_of(b, inner, facts), facts));
}

Stmt loop(const Var& v, Expr extent, Stmt body) {
  return make_stmt(For{
      v, int_imm(0), std::move(extent), AxisKind::spatial, LoopMark::serial, {}, std::move(body)});
}

std::string text(const Touched& t) {
  if (!t.any) return "untouched";
  if (!t.box) return "unknown";
  std::string out;
  for (const DimRegion& r : *t.box) out += (out.empty() ? "" : ", ") + text(std::optional(r));
  return out;
}

/// Random quasi-affine index over outer o, p and inner i, j.
Expr random_index(Rng& rng, int depth) {
  const Expr leaves[] = {O, P, I, J};
  if (depth == 0) return rng.chance(0.15) ? int_imm(rng.between(-5, 9)) : leaves[rng.below(4)];
  auto sub = [&] { return random_index(rng, depth - 1); };
  Expr divisor = int_imm(std::vector<int64_t>{2, 3, 4, 6, 8, 5}[static_cast<size_t>(rng.below(6))]);
  switch (rng.below(8)) {
    case 0:
    case 1:
      return sub() + sub();
    case 2:
      return sub() - sub();
    case 3:
      return sub() * int_imm(rng.between(-3, 8));
    case 4:
      return floor_div(sub(), divisor);
    case 5:
      return floor_mod(sub(), divisor);
    case 6:
      return rng.chance(0.5) ? min(sub(), sub()) : max(sub(), sub());
    default:
      return rng.chance(0.3) ? select(sub() < sub(), sub(), sub()) : sub() * 4 + sub();
  }
}

struct Extremes {
  int64_t low = INT64_MAX, high = INT64_MIN;
  void take(int64_t v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
};

Extremes enumerate(const Expr& index, int64_t at_o, int64_t at_p, const VarRanges& inner) {
  Extremes out;
  for (int64_t a = *inner.at(i).min; a <= *inner.at(i).max; ++a) {
    for (int64_t b = *inner.at(j).min; b <= *inner.at(j).max; ++b) {
      out.take(evaluate(index, {{o.get(), at_o}, {p.get(), at_p}, {i.get(), a}, {j.get(), b}}));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("regions of the stencils, strides and dilations of D10 to D13 and D17") {
  VarRanges tile8{{i, {0, 7}}}, tile5{{i, {0, 4}}}, taps{{i, {0, 7}}, {j, {0, 2}}};
  CHECK(region(O * 8 + I, tile8) == "o * 8 +8");
  CHECK(united(O * 8 + I, O * 8 + I + 2, tile8) == "o * 8 +10");
  CHECK(united(O * 8 + I + 2, O * 8 + I, tile8) == "o * 8 +10");
  CHECK(region(O * 4 + I + J - 1, {{i, {0, 3}}, {j, {0, 2}}}) == "o * 4 - 1 +6");
  CHECK(united((O * 5 + I) * 2, (O * 5 + I) * 2 + 1, tile5) == "o * 10 +10");
  CHECK(region(O * 8 + I + J * 3, taps) == "o * 8 +14");
  CHECK(region(22 - (O * 5 + I), tile5) == "18 - o * 5 +5");
}

TEST_CASE("D14: the union of two halos") {
  VarRanges tile{{i, {0, 7}}};
  Expr at = O * 8 + I;
  Simplifier facts;
  std::optional<DimRegion> all = region_of(at, tile, facts);
  all = unite(*all, *region_of(at - 2, tile, facts), facts);
  all = unite(*all, *region_of(at + 2, tile, facts), facts);
  CHECK(text(all) == "o * 8 - 2 +12");
}

TEST_CASE("D15: the rows and columns of a fused axis") {
  VarRanges by3{{i, {0, 2}}}, by4{{i, {0, 3}}};
  CHECK(region(floor_div(O * 3 + I, 6), by3) == "o // 2 +1");
  CHECK(region(floor_mod(O * 3 + I, 6), by3) == "o % 2 * 3 +3");
  CHECK(region(floor_div(O * 4 + I, 6), by4) == "o * 2 // 3 +2");
  CHECK(region(floor_mod(O * 4 + I, 6), by4) == "0 +6");
}

TEST_CASE("clamped and selected indices have regions") {
  VarRanges tile{{i, {0, 7}}}, outer{{o, {0, 9}}};
  CHECK(region(min(O * 8 + I, 70), tile, outer) == "min(o * 8, 70) +8");
  CHECK(region(max(O * 8 + I - 3, 0), tile, outer) == "max(o * 8 - 3, 0) +8");
  CHECK(region(select(I < 4, O + I, O + I + 2), tile) == "o +10");
}

TEST_CASE("where nothing constant is known, ranges help or there is no region") {
  VarRanges tile{{i, {0, 7}}};
  Buffer A("A", i64, {8}), B("B", u8, {8});
  CHECK(region(load(A, {I}), tile) == "nothing");
  CHECK(region(cast(i64, load(B, {I})), tile) == "0 +256");
  CHECK(region(I * P, tile) == "nothing");
  CHECK(region(I * P, tile, {{p, {0, 3}}}) == "0 +22");
  CHECK(region(P, tile) == "p +1");
  CHECK(united(O * 8 + I, P * 8 + I, tile) == "nothing");
  CHECK(united(O * 8 + I, P * 8 + I, tile, {{o, {0, 1}}, {p, {0, 1}}}) == "0 +16");
}

TEST_CASE("a region is never too small and its start speaks of outer variables only") {
  constexpr uint64_t kSeed = 23;
  INFO("seed " << kSeed);
  Rng rng(kSeed);
  for (int round = 0; round < 1500; ++round) {
    VarRanges inner{{i, {0, rng.below(6)}}, {j, {0, rng.below(4)}}};
    VarRanges outer{{o, {0, 1 + rng.below(5)}}, {p, {rng.between(-3, 0), 3}}};
    Expr index = random_index(rng, 1 + static_cast<int>(rng.below(4)));
    Simplifier facts(outer);
    std::optional<DimRegion> r = region_of(index, inner, facts);
    INFO("round " << round << ": " << print(index) << "  ->  " << text(r) << " for i "
                  << print(inner[i]) << ", j " << print(inner[j]) << ", o " << print(outer[o])
                  << ", p " << print(outer[p]));
    REQUIRE(r);
    REQUIRE_FALSE((uses_var(r->min, i) || uses_var(r->min, j)));
    for (int64_t at_o = *outer[o].min; at_o <= *outer[o].max; ++at_o) {
      for (int64_t at_p = *outer[p].min; at_p <= *outer[p].max; ++at_p) {
        Extremes real = enumerate(index, at_o, at_p, inner);
        int64_t low = evaluate(r->min, {{o.get(), at_o}, {p.get(), at_p}});
        REQUIRE(low <= real.low);
        REQUIRE(low + r->extent > real.high);
      }
    }
  }
}

TEST_CASE("a linear index has exactly its region") {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    VarRanges inner{{i, {0, 1 + rng.below(6)}}, {j, {0, rng.below(4)}}};
    Expr index = O * int_imm(rng.between(-20, 20)) + I * int_imm(rng.between(-4, 4)) +
                 J * int_imm(rng.between(-4, 4)) + int_imm(rng.between(-9, 9));
    Simplifier facts({{o, {0, 1000000}}});
    std::optional<DimRegion> r = region_of(index, inner, facts);
    REQUIRE(r);
    Extremes real = enumerate(index, 77, 0, inner);
    INFO(print(index) << "  ->  " << text(r));
    CHECK(evaluate(r->min, {{o.get(), 77}}) == real.low);
    CHECK(r->extent == real.high - real.low + 1);
  }
}

TEST_CASE("reads and writes of a subtree, through bindings and over the loops inside") {
  Buffer A("A", f32, {34}), B("B", f32, {32}), G("G", i64, {32}), C("C", f32, {32});
  Var x("x");
  Stage stage{.name = "B",
              .axes = {{Axis(x, 32), AxisKind::spatial, O * 8 + I}},
              .outputs = {B},
              .indices = {x},
              .values = {load(A, {x}) + load(A, {Expr(x) + 2})}};
  Stmt tile = loop(i, 8, make_stmt(stage));
  Simplifier facts({{o, {0, 3}}});
  CHECK(text(reads_of(tile, A, facts)) == "o * 8 +10");
  CHECK(text(writes_of(tile, B, facts)) == "o * 8 +8");
  CHECK(text(reads_of(tile, B, facts)) == "untouched");
  CHECK(text(writes_of(tile, A, facts)) == "untouched");
  CHECK(text(reads_of(loop(o, 4, tile), A, facts)) == "0 +34");
  Buffer small("S", f32, {9});
  Stmt beyond =
      loop(i, 8, make_stmt(Store{C, {I}, load(small, {O + I}) + load(small, {O + I + 2}), {}}));
  CHECK(text(reads_of(beyond, small, facts)) == "0 +9");

  Stmt gather = loop(i, 8, make_stmt(Store{C, {I}, load(A, {load(G, {I})}), {}}));
  CHECK(text(reads_of(gather, A, facts)) == "0 +34");
  CHECK(text(reads_of(gather, G, facts)) == "0 +8");
}

TEST_CASE("loops that start elsewhere, lets and vectors are followed") {
  Buffer A("A", f32, {1000}), C("C", f32, {1000});
  Simplifier facts({{o, {0, 9}}});
  Var t("t");
  Stmt body = make_stmt(
      LetStmt{t, I * 2, make_stmt(Store{C, {ramp(I, 1, 4)}, load(A, {ramp(t, 2, 4)}), {}})});
  Stmt from = make_stmt(For{i, O * 16, int_imm(4), AxisKind::spatial, LoopMark::serial, {}, body});
  CHECK(text(writes_of(from, C, facts)) == "o * 16 +7");
  CHECK(text(reads_of(from, A, facts)) == "o * 32 +13");
}

TEST_CASE("a buffer of symbolic size whose index is unknown has no box") {
  Var n("n");
  Buffer A("A", f32, {Expr(n)}), C("C", f32, {8});
  Simplifier facts;
  Stmt s = loop(i, Expr(n), make_stmt(Store{C, {Expr(0)}, load(A, {I}), {}}));
  Touched t = reads_of(s, A, facts);
  CHECK(t.any);
  CHECK_FALSE(t.box);
}
