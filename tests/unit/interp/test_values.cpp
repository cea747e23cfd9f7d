#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "run.h"

using namespace tenon;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

double two(BinaryOp op, double a, double b, DType t) {
  return value_of(binary(op, opaque(a, t), opaque(b, t)));
}
double one(UnaryOp op, double a, DType t) { return value_of(unary(op, opaque(a, t))); }
double cast_of(double a, DType from, DType to) { return value_of(cast(to, opaque(a, from))); }

using B = BinaryOp;
using U = UnaryOp;

}  // namespace

TEST_CASE("D36: division rounds to minus infinity or to zero, for all signs") {
  CHECK(two(B::floor_div, -7, 3, i32) == -3);
  CHECK(two(B::floor_mod, -7, 3, i32) == 2);
  CHECK(two(B::floor_div, 7, -3, i32) == -3);
  CHECK(two(B::floor_mod, 7, -3, i32) == -2);
  CHECK(two(B::floor_div, -7, -3, i32) == 2);
  CHECK(two(B::floor_mod, -7, -3, i32) == -1);
  CHECK(two(B::trunc_div, -7, 3, i32) == -2);
  CHECK(two(B::trunc_mod, -7, 3, i32) == -1);
  CHECK(two(B::trunc_div, 7, -3, i32) == -2);
  CHECK(two(B::trunc_mod, 7, -3, i32) == 1);
}

TEST_CASE("D36: every pair of int8 divides as the mathematical definition says") {
  BinaryFn div = binary_fn(B::floor_div, i8), mod = binary_fn(B::floor_mod, i8);
  BinaryFn tdiv = binary_fn(B::trunc_div, i8), tmod = binary_fn(B::trunc_mod, i8);
  for (int a = -128; a < 128; ++a) {
    for (int b = -128; b < 128; ++b) {
      if (b == 0) continue;
      Value x = int_value(a), y = int_value(b);
      auto q = static_cast<int>(std::floor(static_cast<double>(a) / b));
      bool ok = div(x, y).i == static_cast<int8_t>(q) && mod(x, y).i == a - q * b &&
                tdiv(x, y).i == static_cast<int8_t>(a / b) && tmod(x, y).i == a % b;
      if (!ok) FAIL("wrong at " << a << ", " << b);
    }
  }
  CHECK(div(int_value(-128), int_value(-1)).i == -128);
}

TEST_CASE("D38: integers wrap in their type") {
  CHECK(two(B::add, 250, 10, u8) == 4);
  CHECK(two(B::add, 127, 1, i8) == -128);
  CHECK(two(B::mul, 100, 3, i8) == 44);
  CHECK(one(U::neg, -2147483648.0, i32) == -2147483648.0);
  CHECK(two(B::mul, 65536, 65536, i32) == 0);
  CHECK(value_of(cast(i32, opaque(250, u8)) + cast(i32, opaque(10, u8))) == 260);
  CHECK(one(U::abs, -128, i8) == -128);
  CHECK(one(U::bit_not, 5, u8) == 250);
  CHECK(two(B::lt, 4294967295.0, 1, u32) == 0);
}

TEST_CASE("D40: floats to integers truncate, saturate, and NaN is 0") {
  CHECK(cast_of(-1.9, f32, i32) == -1);
  CHECK(cast_of(1.9, f32, i32) == 1);
  CHECK(cast_of(300.7, f32, u8) == 255);
  CHECK(cast_of(-3, f32, u8) == 0);
  CHECK(cast_of(kNan, f32, i32) == 0);
  CHECK(cast_of(kInf, f32, i32) == 2147483647.0);
  CHECK(cast_of(-kInf, f64, i64) == static_cast<double>(INT64_MIN));
  CHECK(cast_of(3e9, f64, i32) == 2147483647.0);
  CHECK(cast_of(1e30, f64, u64) == -1);  // all bits set
  CHECK(cast_of(0.5, f32, boolean) == 1);
  CHECK(cast_of(kNan, f32, boolean) == 1);
  CHECK(cast_of(300, i32, u8) == 44);
  CHECK(cast_of(16777217, i64, f32) == 16777216);
}

TEST_CASE("D41: half precision rounds after each operation") {
  CHECK(two(B::add, 65504, 15, f16) == 65504);
  CHECK(two(B::add, 65504, 16, f16) == kInf);
  CHECK(two(B::add, 2048, 1, f16) == 2048);
  CHECK(cast_of(2051, f32, f16) == 2052);
  CHECK(cast_of(std::ldexp(1, -24), f32, f16) == std::ldexp(1, -24));
  CHECK(cast_of(std::ldexp(1, -25), f32, f16) == 0);
  CHECK(std::isnan(cast_of(kNan, f32, f16)));
  CHECK(cast_of(-kInf, f32, f16) == -kInf);
  CHECK(cast_of(257, f32, bf16) == 256);
  CHECK(cast_of(259, f32, bf16) == 260);
  CHECK(cast_of(1e39, f64, f32) == kInf);
}

TEST_CASE("f32 rounds after every operation") {
  float a = 16777216.0f;
  CHECK(value_of(opaque(a, f32) + 1.0 + 1.0) == a);
  CHECK(two(B::mul, 0.1f, 0.1f, f32) == static_cast<double>(0.1f * 0.1f));
  CHECK(two(B::div, 1, 3, f32) == static_cast<double>(1.0f / 3.0f));
  CHECK(one(U::sqrt, 2, f32) == static_cast<double>(std::sqrt(2.0f)));
  CHECK(value_of(float_imm(0.1)) == static_cast<double>(0.1f));
}

TEST_CASE("D42, D43: NaN goes through min and max, and compares as IEEE says") {
  for (B op : {B::min, B::max}) {
    CHECK(std::isnan(two(op, kNan, 1, f32)));
    CHECK(std::isnan(two(op, 1, kNan, f64)));
  }
  CHECK(two(B::max, 2, 3, f32) == 3);
  CHECK(two(B::min, 2, 3, f16) == 2);
  CHECK(two(B::eq, kNan, kNan, f32) == 0);
  CHECK(two(B::ne, kNan, kNan, f32) == 1);
  CHECK(two(B::ge, kNan, 1, f32) == 0);
  CHECK(one(U::is_nan, kNan, f32) == 1);
  CHECK(std::isnan(value_of(opaque(kInf, f32) * 0.0)));
  CHECK(std::signbit(value_of(opaque(-0.0, f32) + opaque(-0.0, f32))));
}

TEST_CASE("D45: shifts take their amount modulo the width") {
  CHECK(two(B::shr, -8, 1, i32) == -4);
  CHECK(two(B::shr, 2147483648.0, 31, u32) == 1);
  CHECK(two(B::shl, 1, 31, u32) == 2147483648.0);
  CHECK(two(B::shl, 3, 33, i32) == 6);
  CHECK(two(B::shr, 128, 9, u8) == 64);
  CHECK(two(B::shl, 3, -1, i8) == -128);
}

TEST_CASE("the other operations on one element") {
  CHECK(two(B::bit_and, 12, 10, i32) == 8);
  CHECK(two(B::bit_or, 12, 10, i32) == 14);
  CHECK(two(B::bit_xor, 12, 10, i32) == 6);
  CHECK(two(B::logical_and, 1, 0, boolean) == 0);
  CHECK(two(B::logical_or, 1, 0, boolean) == 1);
  CHECK(one(U::logical_not, 1, boolean) == 0);
  CHECK(one(U::round, 2.5, f32) == 2);
  CHECK(one(U::round, 3.5, f32) == 4);
  CHECK(one(U::floor, -1.5, f32) == -2);
  CHECK(one(U::ceil, -1.5, f32) == -1);
  CHECK(one(U::trunc, -1.5, f32) == -1);
  CHECK(one(U::abs, -1.5, f64) == 1.5);
  CHECK(value_of(select(opaque(1, boolean), opaque(3, i32), opaque(4, i32))) == 3);
  CHECK(value_of(bitcast(i32, opaque(1, f32))) == 0x3f800000);
  CHECK(value_of(bitcast(f16, opaque(0x3c00, u16))) == 1);
  CHECK(value_of(exp(opaque(1, f32))) == static_cast<double>(static_cast<float>(std::exp(1.0))));
  CHECK(value_of(pow(opaque(2, f64), opaque(10, f64))) == 1024);
  CHECK(value_of(sigmoid(opaque(0, f32))) == 0.5);
  CHECK(value_of(call(MathFn::atan, {opaque(1, f64)})) == std::atan(1.0));
}

TEST_CASE("vectors: ramps, broadcasts, masks, selects, reductions and shuffles") {
  using V = std::vector<double>;
  Expr r = ramp(opaque(3, i64), opaque(-2, i64), 4);
  CHECK(lanes_of(r) == V{3, 1, -1, -3});
  CHECK(lanes_of(broadcast(opaque(7, i32), 3)) == V{7, 7, 7});
  CHECK(lanes_of(r * r) == V{9, 1, 1, 9});
  CHECK(lanes_of(-r) == V{-3, -1, 1, 3});
  CHECK(lanes_of(cast(f32, r)) == V{3, 1, -1, -3});
  CHECK(lanes_of(r < broadcast(Expr(0), 4)) == V{0, 0, 1, 1});
  CHECK(lanes_of(select(r < broadcast(Expr(0), 4), -r, r + 10)) == V{13, 11, 1, 3});
  CHECK(lanes_of(shuffle(r, {3, 0})) == V{-3, 3});
  CHECK(lanes_of(floor_div(r, broadcast(Expr(2), 4))) == V{1, 0, -1, -2});
  CHECK(value_of(vector_reduce(B::add, r)) == 0);
  CHECK(value_of(vector_reduce(B::max, r)) == 3);
  CHECK(value_of(vector_reduce(B::min, cast(f32, r))) == -3);
  CHECK(value_of(vector_reduce(B::logical_or, r < broadcast(Expr(-2), 4))) == 1);
  Var v("v", {i64, 4});
  CHECK(lanes_of(let(v, r, Expr(v) + Expr(v))) == V{6, 2, -2, -6});
  CHECK(lanes_of(exp(cast(f64, r)))[0] == std::exp(3.0));
}

TEST_CASE("integer division by zero is an error where the value is wanted") {
  CHECK_THROWS_WITH(two(B::floor_div, 1, 0, i32), Catch::Contains("integer division by zero"));
  Expr r = ramp(opaque(0, i64), opaque(1, i64), 3), zero = broadcast(Expr(0), 3);
  CHECK_THROWS_WITH(lanes_of(floor_div(r, r)), Catch::Contains("integer division by zero"));
  CHECK(lanes_of(select(r == zero, zero, floor_div(r, r))) == std::vector<double>{0, 1, 1});
  CHECK(value_of(select(opaque(0, boolean), floor_div(opaque(1, i32), opaque(0, i32)),
                        opaque(5, i32))) == 5);
}
