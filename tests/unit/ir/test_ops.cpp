#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cmath>

using namespace tenon;

TEST_CASE("literals adapt to the other operand's type and constants fold") {
  Var x("x", {f32, 1});
  CHECK((x * 2).type() == Type{f32, 1});
  CHECK((0.5 + x).type() == Type{f32, 1});
  CHECK(as_int(Expr(3) * 4 + 1) == 13);
  CHECK(as_int(floor_div(Expr(-7), 3)) == -3);
  CHECK(as_int(floor_mod(Expr(-7), 3)) == 2);
  CHECK(as_int(trunc_div(Expr(-7), 3)) == -2);
  CHECK(as_int(int_imm(250, u8) + int_imm(10, u8)) == 4);
  CHECK(as_float(float_imm(0.1) + float_imm(0.2)) == double(0.1f + 0.2f));
}

TEST_CASE("type errors name both types") {
  Var x("x", {f32, 1}), y("y", {f64, 1}), n("n");
  CHECK_THROWS_WITH(x + y, Catch::Contains("formula error in add") &&
                               Catch::Contains("f32 and f64") && Catch::Contains("try: cast"));
  CHECK_THROWS_WITH(n / n, Catch::Contains("floats (integers: floor_div or trunc_div)"));
  CHECK_THROWS_WITH(select(x, x, x), Catch::Contains("bool condition"));
  CHECK_THROWS_AS(exp(n), UserError);
}

TEST_CASE("an unchanged tree comes back as the same pointer") {
  Var x("x"), y("y");
  Expr e = floor_div(x * 8 + y, 4) + min(Expr(x), Expr(y));
  CHECK(rewrite(e, [](const Expr& c) { return c; }).same_as(e));
  CHECK(substitute(e, {{Var("z"), Expr(1)}}).same_as(e));
  Expr s = substitute(e, {{x, Expr(2)}, {y, Expr(3)}});
  CHECK(as_int(s) == 4 + 2);
  CHECK(free_vars(e).size() == 2);
}

TEST_CASE("structural equality is by structure and by identity of variables") {
  Var x("x"), other("x");
  CHECK(structural_equal(Expr(x) + 1, Expr(x) + 1));
  CHECK_FALSE(structural_equal(Expr(x) + 1, Expr(other) + 1));
  CHECK_FALSE(structural_equal(float_imm(0.0), float_imm(-0.0)));
}

TEST_CASE("combiners know their identity and operation") {
  CHECK(combiner_op(*sum_combiner(f32)) == BinaryOp::add);
  CHECK(as_int(max_combiner(i8)->identity[0]) == -128);
  CHECK(as_int(combine(*prod_combiner(i32), {int_imm(3, i32)}, {int_imm(4, i32)})[0]) == 12);
}

TEST_CASE("a float literal is a value of its type") {
  CHECK(as_float(float_imm(1.9, f16)) == 1.900390625);
  CHECK(as_float(float_imm(1.9, bf16)) == 1.8984375);
  CHECK(as_float(cast(f64, float_imm(2049, f16))) == 2048);
  CHECK(std::isinf(*as_float(float_imm(65520, f16))));
  CHECK(std::isnan(*as_float(float_imm(std::nan(""), bf16))));
}
