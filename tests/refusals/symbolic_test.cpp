#include <catch2/catch.hpp>

#include <tenon/schedule/knobs.h>
#include <tenon/support/error.h>

#include "tests/unit/schedule/schedule_formulas.h"

using namespace tenon;
using Catch::Matchers::Contains;

// What cannot be done with an extent that is known at the call only.

namespace {

/// P = 2*X of [m, n], C = its product with B of [n, 8], D = C + 1.
Schedule symbolic() {
  const Var m = symbol("m"), n = symbol("n");
  const Tensor x = input("X", f32, {m, n}), b = input("B", f32, {n, 8});
  const Axis u("u", m), v("v", n), i("i", m), j("j", 8), k("k", n), y("y", m), z("z", 8);
  const Tensor p = compute("P", {u, v}, x(u, v) * 2.0);
  const Tensor c = compute("C", {i, j}, sum(p(i, k) * b(k, j), k));
  return {make_program("symbolic", {compute("D", {y, z}, c(y, z) + 1.0)}), wide_target()};
}

template <class F>
std::string refusal(F&& step) {
  try {
    step();
  } catch (const ScheduleError& e) {
    return e.what();
  }
  return "not refused";
}

}  // namespace

TEST_CASE("loops of symbolic extents are neither fused into, unrolled nor vectorised") {
  Schedule s = symbolic();
  CHECK_THAT(refusal([&] { s["P"].fuse("u", "v"); }),
             Contains("the inner loop \"v\" has the symbolic extent n; fuse needs a constant"));
  CHECK_THAT(refusal([&] { s["C"].unroll("i"); }),
             Contains("loop \"i\" has the symbolic extent m; unroll needs a constant") &&
                 Contains("split it by a constant first"));
  CHECK_THAT(refusal([&] { s["P"].vectorize("v"); }),
             Contains("loop \"v\" has the symbolic extent n; vectorize needs a constant") &&
                 Contains("split it by the number of lanes first"));
  CHECK_THAT(refusal([&] { s["P"].split("v", 4, {.tail = Tail::exact}); }),
             Contains("loop \"v\" has extent n, which 4 does not divide"));
  // The outer loop of a fusion may be symbolic.
  CHECK_NOTHROW(s["D"].fuse("y", "z"));
  CHECK_THAT(s.print(), Contains("for y_z in 0..m*8"));
}

TEST_CASE("registers are of constant size") {
  Schedule s = symbolic();
  CHECK_THAT(refusal([&] { s["C"].cache_read("P", "i", {.scope = Scope::reg}); }),
             Contains("dimension 1 of P has the symbolic extent n; register memory is of constant "
                      "size") &&
                 Contains("place it inside a split of that dimension"));
  CHECK_THAT(refusal([&] { s.set_scope("P", Scope::reg); }),
             Contains("dimension 0 of P has the symbolic extent m; register memory"));
  CHECK_NOTHROW(s["C"].cache_read("P", "i"));
  Schedule tile = symbolic();
  tile["C"].split("i", 4);
  tile["C"].reorder({"i.o", "k", "i.i", "j"});
  CHECK_NOTHROW(tile["C"].cache_write("i.o", {.scope = Scope::reg}));
}

TEST_CASE("a write cache needs loops inside of constant or whole extent") {
  Schedule s = symbolic();
  s["C"].split("i", 4);
  s["C"].reorder({"j", "i.o", "i.i", "k"});
  CHECK_THAT(
      refusal([&] { s["C"].cache_write("j"); }),
      Contains("loop \"i.o\" has the symbolic extent (m + 3) // 4; what stage \"C\" writes of "
               "dimension 0 of C inside it is not known to be a box"));
  Schedule whole = symbolic();
  whole["C"].reorder({"j", "i", "k"});
  CHECK_NOTHROW(whole["C"].cache_write("j"));
}

TEST_CASE("what may be empty is not assumed to run") {
  const Var n = symbol("n");
  const Tensor x = input("X", f32, {n});
  const Axis a("a", n), l("l", n);
  const Tensor p = compute("P", {a}, x(a) * 2.0);
  Schedule sums(make_program("sums", {compute("S", {}, sum(p(l), l))}), wide_target());
  CHECK_THAT(refusal([&] { sums["S"].reverse_compute_at("P", "a"); }),
             Contains("loop \"a\" outside may be empty, and then \"S\" would not run"));
  Schedule s = symbolic();
  CHECK_NOTHROW(s["D"].reverse_compute_at("C", "i"));  // no rows of C: no rows of D
  s = symbolic();
  CHECK_THAT(refusal([&] {
               s["C"].reorder({"k", "i", "j"});
               s["C"].cache_write("k");
             }),
             Contains("the reduction loop \"k\" outside may be empty"));
}

TEST_CASE("knobs over divisors want a number") {
  const Tensor x = input("x", f32, {symbol("n"), 8});
  CHECK_THROWS_WITH(x.extent(0), Contains("dimension 0 is symbolic (n); a constant is needed"));
}
