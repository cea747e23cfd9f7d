#include <tenon/support/error.h>
#include <catch2/catch.hpp>

#include "codegen/opencl/opencl.h"
#include "codegen/text/index_width.h"
#include "flat.h"

using namespace tenon;
using namespace tenon::test;
using Catch::Matchers::Contains;

// The text of OpenCL kernels: what is refused, and where indices are 32 bits wide.

namespace {

std::string text_of(const Program& p) { return generate_opencl(p, Target::generic_gpu()); }

/// Each of 64 elements of X is added to the element of S that its own names.
Program histogram(DType t) {
  const Buffer x = flat_buffer("X", t, 64), at = flat_buffer("at", i64, 64),
               s = flat_buffer("S", t, 8);
  const Var i("i");
  const Expr to = load(at, {i});
  return program(
      {x, at}, {s},
      loop(i, Expr(64), store(s, to, load(s, {to}) + load(x, {i}), {}, true), LoopMark::thread_x));
}

}  // namespace

TEST_CASE("atomic updates on OpenCL are of 4 bytes, others are refused with what to do instead") {
  for (DType t : {i32, u32, f32}) CHECK_THAT(text_of(histogram(t)), Contains("atomic_cmpxchg("));
  for (DType t : {i8, f16, i64, f64}) {
    CHECK_THROWS_WITH(
        text_of(histogram(t)),
        Contains("an atomic update of " + std::string(name(t)) + " elements (S)") &&
            Contains("try: run the loop that scatters serially, or sum in i32, u32 or f32"));
  }
}

TEST_CASE("symbolic extents on OpenCL are refused by name with what to do instead") {
  const Var n = Var::symbol("n", {0, 100}), i("i");
  const Buffer x("X", f32, {n}), y("Y", f32, {n});
  Program p = program({x}, {y}, loop(i, n, store(y, i, load(x, {i}))));
  p.symbols = {n};
  CHECK_THROWS_WITH(text_of(p), Contains("code generation of flat: the extents n are symbolic") &&
                                    Contains("code for OpenCL is made for one size") &&
                                    Contains("try: the formula with numbers for them, or the CPU"));
}

TEST_CASE("f64 on an OpenCL device without it and too much shared memory are refused") {
  const Buffer x = flat_buffer("X", f64, 8), y = flat_buffer("Y", f64, 8);
  const Var i("i"), b("b"), j("j");
  Target plain = Target::generic_gpu();
  plain.features.clear();
  CHECK_THROWS_WITH(
      generate_opencl(program({x}, {y}, loop(i, Expr(8), store(y, i, load(x, {i})))), plain),
      Contains("X is f64, which a common GPU cannot compute with") && Contains("try: f32"));

  const Buffer z = flat_buffer("Z", f32, 8), tile = flat_buffer("tile", f32, 20000, Scope::shared);
  const Stmt body = allocate(tile, loop(j, Expr(8), store(z, j, load(tile, {j}))));
  CHECK_THROWS_WITH(text_of(program({}, {z}, loop(b, Expr(2), body, LoopMark::block_x))),
                    Contains("a block needs 80000 bytes of shared memory; a common GPU allows") &&
                        Contains("try: a smaller tile, or global scope"));
}

TEST_CASE("indices are ints where every part of them fits 32 bits") {
  const auto copy = [](int64_t rows, int64_t columns, const Expr& shift) {
    const Buffer x = flat_buffer("X", u8, rows * columns), y = flat_buffer("Y", u8, rows * columns);
    const Var i("i"), j("j");
    const Expr at = Expr(i) * columns + j;
    return text_of(
        program({x}, {y},
                loop(i, Expr(rows), loop(j, Expr(columns), store(y, at, load(x, {at + shift}))))));
  };
  CHECK_THAT(
      copy(1 << 15, 1 << 16, Expr(0)),  // 2^31 elements: the last index is 2^31 - 1
      Contains("const int T = ((i * 65536) + j);") && Contains("for (int i = 0; i < 32768;"));
  const std::string wide = copy((1 << 15) + 1, 1 << 16, Expr(0));
  CHECK_THAT(wide, Contains("const long T = (((long)i * 65536L) + (long)j);") &&
                       Contains("for (int i = 0; i < 32769;"));
  CHECK_THAT(copy(8, 1 << 16, Expr(int64_t{1} << 31)), Contains("2147483648L"));
  // The value after the last one must fit too.
  const Buffer y = flat_buffer("Y", u8, 8);
  const Var i("i");
  const auto loop_to = [&](int64_t n) {
    return text_of(program({}, {y}, loop(i, Expr(n), store(y, floor_mod(i, 8), int_imm(1, u8)))));
  };
  CHECK_THAT(loop_to(INT32_MAX), Contains("for (int i = 0; i < 2147483647; ++i)"));
  CHECK_THAT(loop_to(int64_t{INT32_MAX} + 1), Contains("for (long i = 0; i < 2147483648L; ++i)"));
}

TEST_CASE("values are computed in 64 bits, whatever the indices are") {
  const Buffer y = flat_buffer("Y", i64, 100'000);
  const Var i("i");
  const std::string text =
      text_of(program({}, {y}, loop(i, Expr(100'000), store(y, i, Expr(i) * i))));
  CHECK_THAT(text, Contains("Y[i] = ((long)((ulong)(long)i * (ulong)(long)i));"));
  const std::string small =
      text_of(program({}, {y}, loop(i, Expr(1000), store(y, i, Expr(i) * i))));
  CHECK_THAT(small, Contains("Y[i] = (long)(i * i);"));
}

TEST_CASE("the width of an index is proved on all its parts") {
  IndexWidth w;
  const Var i("i"), b("b", Type{boolean, 1}), unknown("u");
  w.bind(i, {-5, 999});
  const auto range = [&](const Expr& e) {
    const auto r = w.range(e);
    return r ? fmt::format("{}..{}", r->low, r->high) : "none";
  };
  CHECK(range(Expr(i) * 3 - 1) == "-16..2996");
  CHECK(range(Expr(i) * -3) == "-2997..15");
  CHECK(range(floor_div(i, 10)) == "-1..99");
  CHECK(range(floor_mod(i, 10)) == "0..9");
  CHECK(range(floor_div(i, -10)) == "none");
  CHECK(range(min(i, Expr(7))) == "-5..7");
  CHECK(range(max(i, Expr(7))) == "7..999");
  CHECK(range(select(Expr(i) < 3, Expr(i), Expr(2000))) == "-5..2000");
  CHECK(range(ramp(i, int_imm(2), 8)) == "-5..1013");
  CHECK(range(Expr(i) < 3) == "0..1");
  CHECK(range(Expr(unknown)) == "none");
  CHECK(range(select(Expr(unknown) < 3, Expr(i), Expr(0))) == "none");
  // A part that does not fit spoils a whole that would.
  CHECK(range(floor_mod(Expr(i) * (1 << 22), 10)) == "none");
  CHECK(range(Expr(i) * (1 << 21)) == fmt::format("{}..{}", -5 * (1 << 21), 999LL * (1 << 21)));
  CHECK(range(load(flat_buffer("X", i64, 8), {i})) == "none");
  CHECK(range(cast(i64, cast(i8, Expr(i)))) == "none");
}
