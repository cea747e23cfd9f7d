#include <catch2/catch.hpp>

#include <tenon/support/error.h>

#include "schedule_formulas.h"

using namespace tenon;

TEST_CASE("the example of the design gets the loops it shows") {
  Matmul m(1024, 1024, 1024);
  Schedule s(m.program(), wide_target());
  auto [io, ii] = s.split(m.i, 16);
  auto [jo, ji] = s.split(m.j, 128);
  auto [ko, ki] = s.split(m.k, 8);
  s.reorder({io, jo, ko, ki, ii, ji}).parallel(io).unroll(ii).vectorize(ji);
  verify_tree(s);
  CHECK(s.print() == R"(program matmul
input A[1024,1024] f32
input B[1024,1024] f32
output C[1024,1024] f32
stage C[1024,1024] f32
  for i.o in 0..64  parallel
    for j.o in 0..8
      for k.o in 0..128  reduce
        for k.i in 0..8  reduce
          for i.i in 0..16  unroll
            for j.i in 0..128  vectorize
              init C[i.o*16+i.i, j.o*128+j.i] = 0.0
              C[i.o*16+i.i, j.o*128+j.i] += A[i.o*16+i.i, k.o*8+k.i] * B[k.o*8+k.i, j.o*128+j.i]
)");
  CHECK(s.trace().size() == 7);
}

TEST_CASE("a step's loops are all round one stage") {
  const Tensor x = input("X", f32, {4, 6});
  const Axis i("i", 4), j("j", 6), p("i", 4), q("j", 6);
  const Tensor a = compute("A", {i, j}, x(i, j) + 1.0);
  Schedule s(make_program("two", {compute("B", {p, q}, a(p, q) * 2.0)}), wide_target());
  const auto telling = Catch::Contains("loop \"B:i\" is not round stage \"A\"");
  CHECK_THROWS_WITH(s["A"].reorder({"A:j", "B:i"}), telling);
  CHECK_THROWS_WITH(s["A"].fuse("A:j", "B:i"), telling);
  CHECK_THROWS_WITH(s["A"].tile("A:j", "B:i", 2, 2), telling);
  CHECK(s.trace().empty());
  s["A"].compute_at("B", "i");  // now B's loop i is round both
  CHECK_NOTHROW(s["A"].reorder({"A:j", "A:i"}));
  CHECK_THROWS_WITH(s["A"].fuse("B:j", "A:j"), Catch::Contains("is not round"));
}
