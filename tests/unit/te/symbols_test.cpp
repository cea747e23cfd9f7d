#include <tenon/ir/program_json.h>
#include <tenon/ir/visit.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>

using namespace tenon;
using Catch::Contains;

namespace {

/// C[i, j] = sum over k of A[i, k] * B[k, j], and a row sum of it: symbols m and n.
Program matmul(const Var& m, const Var& n) {
  Tensor A = input("A", f32, {m, 16}), B = input("B", f32, {16, n});
  Axis i("i", m), j("j", n), k("k", 16), l("l", n);
  Tensor C = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));
  return make_program("p", {compute("D", {i}, sum(C(i, l), l))});
}

}  // namespace

TEST_CASE("a program lists its symbolic extents with their ranges") {
  const Var m = symbol("m", {.low = 1, .high = 64}), n = symbol("n");
  const Program p = matmul(m, n);
  REQUIRE(p.symbols.size() == 2);
  CHECK(p.symbols[0].same_as(m));
  CHECK(p.symbols[1].same_as(n));
  const std::string text = print(p);
  CHECK_THAT(text, Contains("symbol m in [1, 64]\nsymbol n in [0, 1048576]\ninput A[m,16] f32"));
  CHECK_THAT(text, Contains("allocate C[m,n] f32"));
  CHECK_THAT(text, Contains("for l in 0..n  reduce"));
  // The range is part of the program; a family has programs of fixed and of symbolic extents.
  const Program wider = matmul(symbol("m", {.low = 1, .high = 65}), n);
  CHECK(program_hash(p) != program_hash(wider));
  CHECK(family_hash(p) == family_hash(wider));
}

TEST_CASE("symbols survive the trip through JSON") {
  const Program p = matmul(symbol("m", {.low = 1, .high = 64}), symbol("n"));
  const Program again = program_from_json(to_json(p));
  CHECK(print(again) == print(p));
  CHECK(program_hash(again) == program_hash(p));
  CHECK(again.symbols[0].range() == SymbolRange{1, 64});
}

TEST_CASE("extents may be expressions of symbols") {
  const Var n = symbol("n", {.low = 2, .high = 100});
  Tensor x = input("x", f32, {n});
  Axis i("i", Expr(n) - 2);
  const Program p = make_program("p", {compute("y", {i}, x(i) + x(Expr(i) + 2))});
  CHECK_THAT(print(p), Contains("output y[n-2] f32"));
  const auto term = symbol_term(2 * (Expr(n) + 3) - 1);
  REQUIRE(term);
  CHECK(term->factor == 2);
  CHECK(term->constant == 5);
  CHECK(term->symbol.same_as(n));
  CHECK_FALSE(symbol_term(Expr(n) * Expr(n)));
  CHECK_FALSE(symbol_term(floor_div(n, 2)));
  CHECK(symbol_term(Expr(n) - Expr(n))->symbol.defined() == false);
}

TEST_CASE("errors of symbolic extents say what is wrong") {
  const Var n = symbol("n"), m = symbol("m");
  CHECK_THROWS_WITH(symbol(""), Contains("needs a name"));
  CHECK_THROWS_WITH(symbol("n", {.low = 5, .high = 4}), Contains("the range [5, 4] is not one of"));
  CHECK_THROWS_WITH(symbol("n", {.low = -1, .high = 4}), Contains("the range [-1, 4]"));
  CHECK_THROWS_WITH(input("x", f32, {Var("k")}), Contains("\"k\" is no symbolic extent") &&
                                                     Contains("try: Var k = symbol(\"k\")"));
  CHECK_THROWS_WITH(input("x", f32, {n, Expr(2.5)}),
                    Contains("input \"x\" of n x 2.5:f64: dimension 1 has an extent that is f64"));
  CHECK_THROWS_WITH(compute("y", {Axis("i", Expr(n) - 2)}, float_imm(0)),
                    Contains("axis \"i\" has extent n - 2, which is in [-2, 1048574]") &&
                        Contains("a higher low end"));
  CHECK_THROWS_WITH(input("x", f32, {n, m, n}), Contains("extents of n x m x n are too many") &&
                                                    Contains("symbols with a lower high end"));
  Axis i("i", n), j("j", Expr(n) * Expr(m)), k("k", m);
  CHECK_THROWS_WITH(make_program("p", {compute("y", {j}, float_imm(0))}),
                    Contains("extent n * m of \"y\" cannot be solved for one symbol") &&
                        Contains("a symbol of its own"));
  CHECK_THROWS_WITH(make_program("p", {compute("y", {i}, sum(float_imm(1), k))}),
                    Contains("symbol \"m\" is the extent of no input or output"));
  Tensor x = input("x", f32, {symbol("n")});
  CHECK_THROWS_WITH(make_program("p", {compute("y", {i}, x(i))}),
                    Contains("two different symbols are called \"n\""));
  CHECK_THROWS_WITH(x.extent(0), Contains("dimension 0 is symbolic (n)"));
}

TEST_CASE("a program of symbols that no parameter binds is not well-formed") {
  Program p = matmul(symbol("m"), symbol("n"));
  Program none = p;
  none.symbols.clear();
  CHECK_THAT(verify_errors(none, Form::LoopTree)[0], Contains("variable \"m\" in m is not bound"));
  Program more = p;
  more.symbols.push_back(symbol("k"));
  CHECK_THAT(verify_errors(more, Form::LoopTree)[0],
             Contains("symbol k is the extent of no parameter"));
  more.symbols.back() = symbol("n");
  CHECK_THAT(verify_errors(more, Form::LoopTree)[0], Contains("two symbols are called n"));
}
