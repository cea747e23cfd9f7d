#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

std::shared_ptr<const Combiner> keep_later() {
  return combiner(
      "keep_later", int_imm(0, i32), [](Expr, Expr rhs) { return rhs; }, Commutes::no);
}

Stage stage_of(const Program& p, size_t number) { return *stage_paths(p.body).at(number).stage; }

}  // namespace

TEST_CASE("a combiner of one's own is a function of two partial results") {
  const Tensor x = input("x", i32, {4, 6});
  const Axis i("i", 4), k("k", 6);
  const auto xor_all = combiner(
      "xor", int_imm(0, i32), [](Expr a, Expr b) { return binary(BinaryOp::bit_xor, a, b); },
      Commutes::yes);
  const Program p = make_program("p", {compute("y", {i}, reduce(xor_all, x(i, k), {k}))});
  CHECK(stage_of(p, 0).combiner == xor_all);
  CHECK(xor_all->commutative);
  CHECK(print(p).find("combiner xor(lhs; rhs) = (lhs ^ rhs) identity (0:i32)") !=
        std::string::npos);
  CHECK_FALSE(keep_later()->commutative);
  CHECK_THAT(print(make_program("q", {compute("y", {i}, reduce(keep_later(), x(i, k), {k}))})),
             Contains("ordered"));
}

TEST_CASE("a tuple combiner fills several outputs from one reduction") {
  const Tensor x = input("x", f32, {4, 6});
  const Axis i("i", 4), k("k", 6);
  const auto moments = tuple_combiner(
      "moments", {float_imm(0), float_imm(0)},
      [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
        return std::vector<Expr>{a[0] + b[0], a[1] + b[1]};
      },
      Commutes::yes);
  const auto y = compute_tuple("y", {i}, reduce_tuple(moments, {x(i, k), x(i, k) * x(i, k)}, {k}));
  const Program p = make_program("p", y);
  REQUIRE(stage_paths(p.body).size() == 1);
  CHECK(stage_of(p, 0).outputs.size() == 2);
}

TEST_CASE("every reduction takes a start and a condition") {
  const Tensor x = input("x", i32, {4, 6}), s = input("s", i32, {4});
  const Tensor b = input("b", boolean, {4, 6});
  const Axis i("i", 4), k("k", 6);
  const ReduceOptions options{.start = {s(i)}, .condition = k <= i};
  const Expr all_of[] = {sum(x(i, k), {k}, options), prod(x(i, k), {k}, options),
                         reduce_max(x(i, k), {k}, options), reduce_min(x(i, k), {k}, options)};
  for (const Expr& e : all_of) {
    const Stage stage = stage_of(make_program("p", {compute("y", {i}, e)}), 0);
    CHECK(stage.init[0].as<Load>());
    CHECK(stage.values[0].as<Select>());
  }
  const Stage some =
      stage_of(make_program("p", {compute("y", {i}, any(b(i, k), {k}, {.start = {s(i) > 0}}))}), 0);
  CHECK(some.init[0].as<Binary>());
  const auto best = arg_max(x(i, k), k, false, {.start = {s(i), -1}});
  const Stage pair = stage_of(make_program("p", compute_tuple("y", {i}, best)), 0);
  CHECK(pair.init[0].as<Load>());
  CHECK(as_int(pair.init[1]) == -1);
  const auto later = arg_max(x(i, k), k, false, {.start = {s(i), Expr()}});
  CHECK(as_int(stage_of(make_program("p", compute_tuple("y", {i}, later)), 0).init[1]) ==
        max_int(i64));
}

TEST_CASE("wrong combiners are refused where they are written") {
  const Tensor x = input("x", i32, {6});
  const Axis k("k", 6);
  const auto minus = [](Expr a, Expr b) { return a - b; };
  CHECK_THROWS_WITH(
      combiner("minus", int_imm(0, i32), minus, Commutes::yes),
      Contains("combiner \"minus\": the identity 0:i32 joined with 1:i32 gives -1:i32"));
  CHECK_THROWS_WITH(
      combiner(
          "max0", int_imm(0, i32), [](Expr a, Expr b) { return max(a, b); }, Commutes::yes),
      Contains("the identity 0:i32 joined with -5:i32 gives 0:i32"));
  const auto apart = [](Expr a, Expr b) { return a + b + a * b * (a + b); };
  CHECK_THROWS_WITH(combiner("apart", int_imm(0, i32), apart, Commutes::yes),
                    Contains("joined from the left give") && Contains("from the right"));
  const auto first_best = [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::vector<Expr>{select(a[0] >= b[0], a[0], b[0]), select(a[0] >= b[0], a[1], b[1])};
  };
  CHECK_THROWS_WITH(tuple_combiner("first_best", {int_imm(min_int(i32), i32), int_imm(-1, i32)},
                                   first_best, Commutes::yes),
                    Contains("the other way round"));
  CHECK_NOTHROW(combiner("minus", int_imm(0, i32), minus, Commutes::no));
  CHECK_THROWS_WITH(
      combiner(
          "later", int_imm(0, i32), [](Expr, Expr b) { return b; }, Commutes::yes),
      Contains("0:i32 joined with 1:i32 gives 1:i32, and 0:i32 the other way round") &&
          Contains("declare it Commutes::no"));
  CHECK_THROWS_WITH(
      combiner(
          "one", int_imm(1, i32), [](Expr a, Expr b) { return a + b; }, Commutes::yes),
      Contains("it should change nothing"));
  CHECK_THROWS_WITH(
      combiner(
          "wide", int_imm(0, i32), [](Expr a, Expr) { return cast(i64, a); }, Commutes::no),
      Contains("element 0 of the joined tuple is i64, its identity is i32"));
  CHECK_THROWS_WITH(
      combiner(
          "outer", int_imm(0, i64), [&](Expr a, Expr) { return a + k; }, Commutes::no),
      Contains("speaks of variable \"k\" from outside"));
  CHECK_THROWS_WITH(
      combiner(
          "reads", int_imm(0, i32), [&](Expr a, Expr) { return a + x(0); }, Commutes::no),
      Contains("reads no tensor"));
  CHECK_THROWS_WITH(combiner("lit", cast(i32, k), minus, Commutes::no),
                    Contains("an identity is a literal"));
  CHECK_THROWS_WITH(combiner("", int_imm(0, i32), minus, Commutes::no), Contains("needs a name"));
  CHECK_THROWS_WITH(combiner(
                        "halve", int_imm(0, i32),
                        [](Expr a, Expr) { return floor_div(a, int_imm(0, i32)); }, Commutes::no),
                    Contains("combiner \"halve\": floor_div of lhs by the constant 0"));
  CHECK_THROWS_WITH(
      tuple_combiner(
          "pair", {int_imm(0, i32), int_imm(0, i32)},
          [](const auto& a, const auto&) { return std::vector<Expr>{a[0]}; }, Commutes::no),
      Contains("joining gives 1 elements, the identity has 2"));
}

TEST_CASE("wrong starts and conditions are refused where they are written") {
  const Tensor x = input("x", i32, {4, 6}), f = input("f", f32, {4});
  const Axis i("i", 4), k("k", 6);
  CHECK_THROWS_WITH(sum(x(i, k), {k}, {.start = {f(i)}}),
                    Contains("sum: the start is f32, what is combined is i32"));
  CHECK_THROWS_WITH(sum(x(i, k), {k}, {.start = {cast(i32, k)}}),
                    Contains("the start speaks of axis \"k\", which is reduced over"));
  CHECK_THROWS_WITH(sum(x(i, k), {k}, {.start = {1, 2}}),
                    Contains("2 start values for 1 elements"));
  CHECK_THROWS_WITH(sum(x(i, k), {k}, {.start = {int64_t{1} << 40}}),
                    Contains("the literal 1099511627776 is no i32"));
  CHECK_THROWS_WITH(sum(x(i, k), {k}, {.condition = x(i, k)}),
                    Contains("the condition is i32 and not bool"));
  CHECK_THROWS_WITH(reduce(keep_later(), x(i, k), {k}, {.condition = k <= i}),
                    Contains("keep_later: a point that does not count is joined as the identity"));
  CHECK_THROWS_WITH(reduce_tuple(keep_later(), {x(i, k), x(i, k)}, {k}),
                    Contains("2 sources for a combiner of 1 elements"));
  CHECK_THROWS_WITH(reduce(nullptr, x(i, k), {k}), Contains("the combiner is undefined"));
}

TEST_CASE("constants without a value are refused when the formula is written") {
  const Tensor x = input("x", i32, {4}), u = input("u", u8, {4});
  const Axis i("i", 4), k("k", 4);
  const std::pair<Expr, std::string> divisions[] = {{floor_div(x(i), 0), "floor_div"},
                                                    {floor_mod(x(i), 0), "floor_mod"},
                                                    {trunc_div(x(i), 0), "trunc_div"},
                                                    {trunc_mod(x(i), 0), "trunc_mod"}};
  for (const auto& [e, word] : divisions)
    CHECK_THROWS_WITH(compute("y", {i}, e), Contains("compute \"y\": " + word +
                                                     " of x[i] by the constant 0 has no value"));
  CHECK_THROWS_WITH(compute("y", {}, sum(floor_div(x(k), floor_div(int_imm(1, i32), 2)), k)),
                    Contains("by the constant 0"));
  CHECK_THROWS_WITH(compute("y", {i}, floor_div(7, 0)), Contains("of 7 by the constant 0"));
  CHECK_THROWS_WITH(compute("y", {i}, binary(BinaryOp::shr, x(i), 32)),
                    Contains("shr of x[i] by the constant 32: i32 has 32 bits") &&
                        Contains("shifted by 0 to 31"));
  CHECK_THROWS_WITH(compute("y", {i}, binary(BinaryOp::shl, x(i), -1)),
                    Contains("by the constant -1"));
  CHECK_THROWS_WITH(compute("y", {i}, binary(BinaryOp::shl, u(i), 8)),
                    Contains("u8 has 8 bits, so it is shifted by 0 to 7"));
  CHECK_NOTHROW(compute("y", {i}, binary(BinaryOp::shr, x(i), 31)));
  CHECK_NOTHROW(compute("y", {i}, floor_div(x(i), -1)));
}

TEST_CASE("literals outside their type are refused") {
  CHECK_THROWS_WITH(int_imm(256, u8),
                    Contains("the literal 256 is outside u8, which holds 0 to 255"));
  CHECK_THROWS_WITH(int_imm(-1, u32), Contains("the literal -1 is outside u32"));
  CHECK_THROWS_WITH(int_imm(int64_t{1} << 31, i32), Contains("outside i32"));
  CHECK_THROWS_WITH(int_imm(2, boolean), Contains("outside bool"));
  CHECK(as_int(int_imm(-128, i8)) == -128);
  CHECK(as_int(cast(u8, int_imm(256, i32))) == 0);
  CHECK(as_int(-int_imm(-128, i8)) == -128);
  const Tensor u = input("u", u8, {4}), w = input("w", u64, {4});
  CHECK_THROWS_WITH(u(0) + 256, Contains("both operands need one type, got u8 and i64"));
  CHECK_THROWS_WITH(w(0) + (-1), Contains("got u64 and i64"));
}
