#include <catch2/catch.hpp>

#include <tenon/support/error.h>

#include "refused.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

/// C[i,j] = sum over k of i32(A[i,k]) * i32(B[k,j])
Schedule bytes(DType left, DType right, int64_t depth = 8) {
  const Tensor a = input("A", left, {6, depth}), b = input("B", right, {depth, 40});
  const Axis i("i", 6), j("j", 40), k("k", depth);
  return {make_program("bytes",
                       {compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k))}),
          wide_target()};
}

/// The same with B packed and the loops of dot4 innermost.
Schedule packed(DType left, DType right) {
  Schedule s = bytes(left, right);
  s.split("j", 16);
  s.split("k", 4);
  s.reorder({"j.o", "k.o", "i", "j.i", "k.i"});
  s.cache_read("B", "j.o", {.layout = {{1, 16, 0}, {0, 4, 0}, {1, 1, 16}, {0, 1, 4}}});
  return s;
}

}  // namespace

TEST_CASE("D39 tensorize refuses signed bytes on the left of dot4, which has none") {
  refused([] { packed(i8, i8)["C"].tensorize("j.i", "dot4_u8i8_i32"); },
          {"loop \"j.i\" of stage \"C\" is not dot4_u8i8_i32",
           "it computes another formula: operand A of the formula is u8; the stage reads A[i, k], "
           "which is i8",
           "declare an intrinsic of this formula, or vectorize the loop"});
}

TEST_CASE("tensorize takes the operands in either order") {
  CHECK_NOTHROW(packed(u8, i8)["C"].tensorize("j.i", "dot4_u8i8_i32"));
  CHECK_NOTHROW(packed(i8, u8)["C"].tensorize("j.i", "dot4_u8i8_i32"));
}

TEST_CASE("tensorize refuses another formula and says where it differs") {
  const Tensor a = input("A", u8, {40, 4}), b = input("B", i8, {40, 4});
  const Axis j("j", 40), k("k", 4);
  const auto schedule = [&](const Expr& value) {
    return Schedule(make_program("p", {compute("C", {j}, value)}), wide_target());
  };
  const Expr x = cast(i32, a(j, k)), y = cast(i32, b(j, k));
  refused([&] { schedule(sum(x + y, k)).tensorize("j", "dot4_u8i8_i32"); },
          {"the formula has i32(A[i, r]) * i32(B[i, r]) (i32) where the stage has",
           "i32(A[j, k]) + i32(B[j, k])"});
  refused([&] { schedule(reduce_max(x * y, {k})).tensorize("j", "dot4_u8i8_i32"); },
          {"the formula is sum and the stage max"});
  refused(
      [&] {
        schedule(sum(cast(i64, a(j, k)) * cast(i64, b(j, k)), k)).tensorize("j", "dot4_u8i8_i32");
      },
      {"the formula gives i32 and the stage i64"});
  refused([&] { schedule(sum(x * x, k)).tensorize("j", "dot4_u8i8_i32"); },
          {"operand B of the formula is i8; the stage reads A[j, k], which is u8"});
}

TEST_CASE("tensorize refuses a nest that is not the formula's") {
  refused([] { bytes(u8, i8).tensorize("i", "dot4_u8i8_i32"); },
          {"one loop and the stage must be all that is inside it, but there are 2 loops",
           "split and reorder"});
  refused(
      [] { bytes(u8, i8).tensorize("j", "dot4_u8i8_i32"); },
      {"the formula combines 4 elements, and loop \"k\" has extent 8", "split the reduction by 4"});
  refused(
      [] {
        Schedule s = bytes(u8, i8, 4);
        s.reorder({"k", "j"});
        s.tensorize("k", "dot4_u8i8_i32");
      },
      {"loop \"j\" is no reduction loop"});
  refused(
      [] {
        Schedule s = packed(u8, i8);
        s["C"].vectorize("j.i").tensorize("j.i", "dot4_u8i8_i32");
      },
      {"already marked vectorize"});
  refused(
      [] {
        const Tensor a = input("A", u8, {3, 16, 4}), b = input("B", i8, {4});
        const Axis h("h", 3), j("j", 16), k("k", 4);
        Schedule s(make_program("p", {compute("C", {h, j},
                                              sum(cast(i32, a(h, j, k)) * cast(i32, b(k)), k))}),
                   wide_target());
        s.vectorize("h", {.tail = Tail::mask}).tensorize("j", "dot4_u8i8_i32");
      },
      {"loop \"h\" outside is vectorized already"});
  refused(
      [] {
        const Expr n = symbol("n");
        const Tensor a = input("A", u8, {n, 4}), b = input("B", i8, {4});
        const Axis j("j", n), k("k", 4);
        Schedule s(
            make_program("p", {compute("C", {j}, sum(cast(i32, a(j, k)) * cast(i32, b(k)), k))}),
            wide_target());
        s.tensorize("j", "dot4_u8i8_i32");
      },
      {"loop \"j\" has the symbolic extent n; tensorize needs a constant"});
  refused([] { bytes(u8, i8).apply(Tensorize{"C", "j", {}}); }, {"tensorize needs an intrinsic"});
}

TEST_CASE("tensorize refuses operands and outputs that no vector holds") {
  refused([] { bytes(u8, i8, 4).tensorize("j", "dot4_u8i8_i32"); },
          {"operand B, which is B, moves by 1 elements a lane and by 40 in loop \"k\"",
           "it must be 4 and 1, or 0 and 1", "cache_read B with a layout"});
  refused(
      [] {
        const Tensor a = input("A", u8, {4}), b = input("B", i8, {3, 40, 4});
        const Axis h("h", 3), j("j", 40), k("k", 4);
        Schedule s(make_program("p", {compute("C", {j, h},
                                              sum(cast(i32, a(k)) * cast(i32, b(h, j, k)), k))}),
                   wide_target());
        s.reorder({"h", "j"});
        s.tensorize("j", "dot4_u8i8_i32");
      },
      {"its iterations do not write neighbouring elements of C", "innermost dimension"});
}

TEST_CASE("a tensorized nest is left alone by later steps") {
  Schedule s = packed(u8, i8);
  s["C"].tensorize("j.i", "dot4_u8i8_i32");
  refused([&] { s["C"].split("j.i", 4); }, {"is marked tensorize"});
  refused(
      [&] {
        s["C"].reorder({"k.i", "j.i"});
      },
      {"the step would change a tensorized nest", "tensorize after this step"});
  s["C"].parallel("j.o");
}

TEST_CASE("an unknown intrinsic names the nearest, and a declaration says what it lacks") {
  CHECK_THROWS_WITH(find_intrinsic("dot4_u8i8"), Contains("there is no intrinsic \"dot4_u8i8\"") &&
                                                     Contains("try: dot4_u8i8_i32"));
  const Tensor a = input("A", u8, {40, 4});
  const Axis j("j", 40), k("k", 4), h("h", 2);
  const Tensor map = compute("C", {j}, a(j, Expr(0)));
  CHECK_THROWS_WITH(declare_intrinsic("f", map, {}), Contains("must be indexed by all axes"));
  const Tensor two = compute("C", {h, j}, a(j, Expr(h)));
  CHECK_THROWS_WITH(declare_intrinsic("f", two, {}), Contains("its formula has 2 axes"));
  const Tensor by = input("B", u8, {40, 4});
  const Tensor quotients = compute("C", {j}, sum(floor_div(a(j, k), by(j, k)), k));
  CHECK_THROWS_WITH(declare_intrinsic("f", quotients, {}),
                    Contains("divides integers by B[") && Contains("only constant divisors"));
  const Tensor fine = compute("C", {j}, sum(cast(i32, a(j, k)), k));
  CHECK_THROWS_WITH(declare_intrinsic("f", fine, {{{}, 12, "llvm.x", {"A"}}}),
                    Contains("runs on 12 lanes; a power of two"));
  CHECK_THROWS_WITH(declare_intrinsic("f", fine, {{{}, 16, "llvm.x", {"B"}}}),
                    Contains("needs operand \"A\" once"));
  CHECK_THROWS_WITH(intrinsic_from_json("[1]"), Contains("no declaration in JSON"));
}
