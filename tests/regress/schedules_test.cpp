#include <tenon/ir/ops.h>
#include <tenon/schedule/schedule.h>

#include <catch2/catch.hpp>

#include "tests/fuzz/draw.h"
#include "tests/fuzz/oracle.h"

using namespace tenon;

// Schedules that random tests found to be wrong: each is right now, or refused.
namespace {

void check_right(const RandomFormula& f, const Schedule& s) {
  INFO(s.print());
  const Oracle oracle(f, 7);
  CHECK(oracle.tree_fault(s.program()) == "");
  CHECK(oracle.flat_fault(s.program(), s.target()) == "");
  CHECK(oracle.machine_fault(s.program(), Target::host()) == "");
}

RandomFormula formula(const std::string& name, const Tensor& output, int64_t index_limit = 1) {
  return {name, make_program(name, {output}), index_limit};
}

}  // namespace

TEST_CASE("a loop of one value along a scan still runs in order") {
  const Tensor x = input("X", i32, {5});
  const Axis i("i", 5);
  const RandomFormula f =
      formula("scan", scan("S", {i}, i, x(i), [&](const Expr& before) { return before + before; }));
  Schedule s(f.program, narrow_target());
  s.split("i", 5, {.tail = Tail::exact});
  s.split("i.o", 1);
  s.split("i.o.i", 1);
  s.fuse("i.o.i.o", "i.o.i.i");
  for (const Primitive& step : {Primitive(Parallel{"S", "i.o.i.o_i.o.i.i"}),
                                Primitive(Vectorize{"S", "i.o.i.o_i.o.i.i", Tail::mask})}) {
    const auto refusal = s.try_apply(step);
    REQUIRE(refusal);
    CHECK_THAT(refusal->rule, Catch::Contains("runs along the scan of stage \"S\""));
  }
  check_right(f, s);
}

TEST_CASE("a prefetch of gathered rows reads no row numbers ahead") {
  const Tensor x = input("X", i32, {2, 5}), idx = input("idx", i32, {9});
  const Axis i("i", 9), j("j", 5);
  const RandomFormula f = formula("gather", compute("G", {i, j}, x(cast(i64, idx(i)), j)), 2);
  Schedule s(f.program, narrow_target());
  s.split("j", 2);
  s.fuse("j.o", "j.i");
  s.fuse("i", "j.o_j.i");
  s.prefetch("X", "i_j.o_j.i", 4);
  check_right(f, s);
}

TEST_CASE("a prefetch of a buffer that moves into the loop afterwards") {
  const Tensor x = input("X", i32, {8, 6});
  const Axis a("a", 8), b("b", 6), i("i", 8), j("j", 6);
  const Tensor p = compute("P", {a, b}, x(a, b) + 1);
  const RandomFormula f = formula("moved", compute("C", {i, j}, p(i, j) * 2));
  Schedule s(f.program, narrow_target());
  s["C"].prefetch("P", "i", 3);
  s["P"].compute_at("C", "i");
  check_right(f, s);
}

TEST_CASE("a prefetch of rows that data names stays inside the buffer") {
  const Tensor x = input("X", i64, {9, 5}), idx = input("idx", i32, {13});
  const Axis i("i", 13), j("j", 5);
  const RandomFormula f = formula("gather", compute("G", {i, j}, x(cast(i64, idx(i)), j)), 9);
  Schedule s(f.program, narrow_target());
  s.reorder({"j", "i"});
  s.pack("X", {{0, 3, 0}, {1, 5, 0}, {0, 1, 3}, {1, 1, 5}});
  s["G"].prefetch("X.packed", "j", 5);
  check_right(f, s);  // 2^32 rows were fetched before
}

TEST_CASE("a select that guards a read of a bool keeps the guard") {
  const Tensor x = input("X", boolean, {4});
  const Axis i("i", 9);
  const Expr inside = Expr(i) < int_imm(4);
  const RandomFormula f =
      formula("guarded", compute("C", {i}, select(inside, x(min(i, int_imm(8))), bool_imm(false))));
  Schedule s(f.program, narrow_target());
  check_right(f, s);
  s.vectorize("i", {Tail::mask});
  check_right(f, s);
}

TEST_CASE("a consumer of two elements at once does not move to the loop that makes one") {
  const Tensor v = input("V", i32, {3});
  const Axis c("c", 3), i("i", 3), j("j", 3);
  const Tensor p = compute("P", {c}, v(c) + 1);
  const RandomFormula f = formula("fan", compute("S", {i, j}, p(i) + p(j)));
  Schedule s(f.program, narrow_target());
  const auto refusal = s.try_apply(ReverseComputeAt{"S", "P", "c"});
  REQUIRE(refusal);
  CHECK_THAT(refusal->rule, Catch::Contains("reads along \"i\" and \"j\" what different"));
  check_right(f, s);
}

TEST_CASE("partial sums in registers of which the last row fills no vector") {
  const Tensor x = input("X", i32, {3, 1});
  const Axis i("i", 3), k("k", 1);
  const RandomFormula f = formula("sums", compute("S", {i}, sum(x(i, k) * x(i, k), k)));
  Schedule s(f.program, narrow_target());
  s.split("k", 4);
  const std::string parts = s.rfactor("k.i");
  s[parts].compute_at("S", "i");
  s.set_scope(parts, Scope::reg);
  s[parts].vectorize("k.i");
  s["S"].vectorize("k.i");
  check_right(f, s);
}

namespace {

/// Rows less their largest value, and their sum.
RandomFormula normalised(int64_t m, int64_t n) {
  const Tensor x = input("X", i32, {m, n});
  const Axis i("i", m), k("k", n), r("i", m), j("j", n), q("i", m), l("l", n), y("y", m), z("z", n);
  const Tensor top = compute("top", {i}, reduce_max(x(i, k), {k}));
  const Tensor e = compute("e", {r, j}, x(r, j) - top(r));
  const Tensor total = compute("total", {q}, sum(e(q, l), l));
  return formula("normalised", compute("Y", {y, z}, e(y, z) + total(y)));
}

}  // namespace

TEST_CASE("a copy of rows that the guards of its reader leave for later") {
  const RandomFormula f = normalised(2, 1);
  Schedule s(f.program, narrow_target());
  s["total"].reverse_compute_at("e", "i");
  s["total"].split("i", 3);
  s["total"].tile("i.o", "i.i", 1, 2);
  s["total"].split("i.o.i", 1);
  const auto refusal = s.try_apply(CacheRead{"total", "e", "i.o.i.o"});
  REQUIRE(refusal);
  CHECK_THAT(refusal->rule, Catch::Contains("only a part of e is computed there"));
  check_right(f, s);
}

TEST_CASE("steps after unroll keep to the limit of copies") {
  const RandomFormula f = normalised(8, 9);
  Schedule s(f.program, narrow_target());
  s["e"].compute_inline();
  s["Y"].reverse_compute_at("total", "l");
  s["total"].split("i", 7);
  s["total"].fuse("i.o", "i.i");
  s["top"].compute_at("total", "l");
  s["Y"].unroll("l");
  s["top"].unroll("i.o_i.i");
  const auto refusal = s.try_apply(Unroll{"top", "k"});
  REQUIRE(refusal);
  CHECK_THAT(refusal->rule, Catch::Contains("give 1134 copies"));
  check_right(f, s);
}

TEST_CASE("an unrolled loop does not move into unrolled loops beyond the limit") {
  const Tensor x = input("X", i32, {40, 40});
  const Axis i("i", 40), j("j", 40);
  const RandomFormula f = formula("copied", compute("C", {i, j}, x(i, j) * 2));
  Schedule s(f.program, narrow_target());
  s["C"].unroll("i");
  const auto refusal = s.try_apply(Unroll{"C", "j"});
  REQUIRE(refusal);
  CHECK_THAT(refusal->rule, Catch::Contains("give 1600 copies"));
  check_right(f, s);
}

TEST_CASE("a consumer of partial sums over nothing stays outside their fused loop") {
  const Tensor x = input("A", i32, {1, 0}), y = input("B", i32, {0, 2});
  const Axis i("i", 1), j("j", 2), k("k", 0);
  const RandomFormula f = formula("empty", compute("C", {i, j}, sum(x(i, k) * y(k, j), k)));
  Schedule s(f.program, narrow_target());
  s["C"].rfactor("k", {.dim = 1});
  s["C.rf"].fuse("j", "k");
  const auto refusal = s.try_apply(ReverseComputeAt{"C", "C.rf", "i"});
  REQUIRE(refusal);
  CHECK_THAT(refusal->rule, Catch::Contains("never runs"));
  check_right(f, s);
}

TEST_CASE("a vector of lanes that are all off reads no element that was not copied") {
  const Tensor x = input("X", i32, {1, 4}), idx = input("idx", i32, {3});
  const Axis i("i", 3), j("j", 4);
  const RandomFormula f = formula("gather", compute("G", {i, j}, x(cast(i64, idx(i)), j)));
  Schedule s(f.program, narrow_target());
  s["G"].fuse("i", "j");
  s["G"].split("i_j", 8);
  s["G"].cache_read("idx", "i_j.o");
  s["G"].annotate("i_j.i", "no_partition", 1);
  s["G"].vectorize("i_j.i", {.tail = Tail::mask});
  check_right(f, s);
}

TEST_CASE("a map folded into a producer that parallel iterations compute twice") {
  const Tensor x = input("X", i32, {2, 1}), v = input("V", i32, {1});
  const Axis i("i", 1), j("j", 2), k("i", 1), l("j", 2);
  const Tensor t = compute("T", {i, j}, x(j, i));
  const RandomFormula f = formula("folded", compute("D", {k, l}, t(k, l) + v(k)));
  Schedule s(f.program, narrow_target());
  s["D"].split("j", 1);
  s["D"].parallel("j.o");
  s["D"].split("j.i", 2);
  s["T"].compute_at("D", "j.i.i");
  const auto refusal = s.try_apply(ReverseComputeInline{"D"});
  REQUIRE(refusal);
  CHECK_THAT(refusal->rule, Catch::Contains("reverse_compute_inline needs independent iterations"));
  check_right(f, s);
}
