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

namespace {

/// The bytes on a matrix unit: rows, lanes, steps and elements of a lane innermost.
Schedule tiled(int64_t m, int64_t n, int64_t k,
               const std::vector<LoopRef>& order = {"i.o", "j.o", "i.i", "j.i", "k.o", "k.i"}) {
  const Tensor a = input("A", u8, {m, k}), b = input("B", i8, {k, n});
  const Axis i("i", m), j("j", n), r("k", k);
  Schedule s(make_program("bytes",
                          {compute("C", {i, j}, sum(cast(i32, a(i, r)) * cast(i32, b(r, j)), r))}),
             wide_target());
  s.pack("B", {{1, 16, 0}, {0, 4, 0}, {1, 1, 16}, {0, 1, 4}});
  s["C"].split("i", 16);
  s["C"].split("j", 16);
  s["C"].split("k", 4);
  s["C"].reorder(order);
  return s;
}

}  // namespace

TEST_CASE("tensorize on tiles refuses what is no whole number of them") {
  CHECK_NOTHROW(tiled(32, 32, 128)["C"].tensorize("i.i", "tile_u8i8_i32"));
  refused([] { tiled(32, 32, 128)["C"].tensorize("i.i", "tile_i8i8_i32"); },
          {"operand A of the formula is i8; the stage reads A[i, k], which is u8"});
  refused([] { tiled(32, 32, 68)["C"].tensorize("i.i", "tile_u8i8_i32"); },
          {"loop \"k.o\" of extent 17 must run over the steps, in tiles of 16",
           "pad_einsum to multiples of the tile"});
  CHECK_NOTHROW(tiled(20, 32, 64)["C"].tensorize("i.i", "tile_u8i8_i32"));
  refused([] { tiled(32, 40, 64)["C"].tensorize("i.i", "tile_u8i8_i32"); },
          {"axis \"j\" of extent 40 is no whole number of tiles"});
  refused([] { tiled(32, 32, 70)["C"].tensorize("i.i", "tile_u8i8_i32"); },
          {"must run over the steps"});
  refused(
      [] {
        tiled(32, 32, 64, {"i.o", "j.o", "i.i", "k.o", "j.i", "k.i"})["C"].tensorize(
            "i.i", "tile_u8i8_i32");
      },
      {"the loops over rows, lanes, steps and elements of a lane must be the innermost"});
  refused([] { tiled(32, 32, 64)["C"].tensorize("j.i", "tile_u8i8_i32"); },
          {"the loops over rows, lanes, steps and elements of a lane must be the innermost"});
}

TEST_CASE("tensorize on tiles refuses operands that do not lie in them") {
  Schedule s = tiled(32, 32, 64);
  s["C"].cache_write("i.o", {.scope = Scope::reg});
  refused([&] { s["C"].tensorize("i.i", "tile_u8i8_i32"); },
          {"its lanes must write neighbouring elements of", "no register scope"});
  const Tensor a = input("A", u8, {16, 64}), b = input("B", i8, {64, 16});
  const Axis i("i", 16), j("j", 16), k("k", 64);
  Schedule plain(
      make_program("p", {compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k))}),
      wide_target());
  plain.split("k", 4);
  refused([&] { plain.tensorize("i", "tile_u8i8_i32"); },
          {"operand B, which is B, must have the 4 elements of a lane next to each other and then "
           "its lanes in order",
           "pack B with a layout"});
}
