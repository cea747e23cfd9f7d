#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>

#include "samples.h"

using namespace tenon;

namespace {

/// All broken rules in one text.
std::string broken(const Program& p, Form form = Form::LoopTree) {
  std::string out;
  for (const std::string& e : verify_errors(p, form)) out += e + "\n";
  return out;
}

/// The sample with its stage changed.
template <class Change>
std::string broken_stage(Change change) {
  MatmulSample sample;
  Stage stage = sample.stage;
  change(sample, stage);
  return broken({"matmul", sample.program.params, sample.tree(stage)});
}

#define CHECK_BROKEN(text, part) CHECK_THAT(text, Catch::Contains(part))

Buffer vec(std::string name = "A") { return Buffer(std::move(name), f32, {64}); }

std::string broken_flat(const Buffer& out, Stmt body) {
  return broken({"flat", {{out, ParamRole::output}}, std::move(body)}, Form::Flat);
}

}  // namespace

TEST_CASE("a well-formed loop tree breaks no rule") {
  CHECK(broken(MatmulSample().program).empty());
  CHECK_NOTHROW(verify(MatmulSample().program, Form::LoopTree));
}

TEST_CASE("verify throws with the rules and the program's text") {
  MatmulSample sample;
  Program p = sample.program;
  p.params.pop_back();
  CHECK_THROWS_WITH(verify(p, Form::LoopTree),
                    Catch::Contains("writes buffer C, which is neither a parameter") &&
                        Catch::Contains("for i.o in 0..7"));
}

TEST_CASE("verify names what a stage breaks") {
  CHECK_BROKEN(broken_stage([](auto&, Stage& s) { s.values.clear(); }), "0 values for 1 outputs");
  CHECK_BROKEN(broken_stage([](auto&, Stage& s) { s.values = {int_imm(1)}; }),
               "value 0 is i64 and its buffer f32");
  CHECK_BROKEN(broken_stage([](auto&, Stage& s) { s.combiner = nullptr; }),
               "has an init and no combiner");
  CHECK_BROKEN(broken_stage([](auto& m, Stage& s) {
                 s.init = {load(m.A, {Expr(m.i), Expr(m.k)})};
               }),
               "variable \"k\" in A[i, k] is not bound here");
  CHECK_BROKEN(broken_stage([](auto& m, Stage& s) { s.indices[0] = m.io; }),
               "variable \"i.o\" in i.o is not bound here");
  CHECK_BROKEN(broken_stage([](auto&, Stage& s) { s.indices.pop_back(); }),
               "1 indices for buffer C of rank 2");
  CHECK_BROKEN(broken_stage([](auto&, Stage& s) { s.axes[0].value = Var("gone"); }),
               "variable \"gone\" in gone is not bound here");
  CHECK_BROKEN(broken_stage([](auto&, Stage& s) { std::swap(s.axes[0], s.axes[2]); }),
               "spatial axes must stand before reduce axes");
  CHECK_BROKEN(broken_stage([](auto& m, Stage& s) { s.spatial_guard = m.io; }), "is not a bool");
  CHECK_BROKEN(broken_stage([](auto& m, Stage& s) { s.outputs = {m.A}; }), "writes input A");
  CHECK_BROKEN(broken_stage([](auto& m, Stage& s) {
                 s.values = {reduce(sum_combiner(f32), {load(m.A, {Expr(m.i), Expr(m.k)})},
                                    {Axis(Var("r"), 3)})};
               }),
               "a nested reduction is notation");
}

TEST_CASE("verify names what the tree breaks") {
  MatmulSample sample;
  Stmt twice = seq({sample.program.body, sample.program.body});
  CHECK_BROKEN(broken({"p", sample.program.params, twice}), "another stage has this name");
  Stmt nested = loop(sample.io, 2, sample.program.body);
  CHECK_BROKEN(broken({"p", sample.program.params, nested}),
               "variable \"i.o\" is bound twice on one path");
  CHECK_BROKEN(broken({"p", sample.program.params, make_stmt(Barrier{})}),
               "a barrier is for flat code only");
  CHECK_BROKEN(broken({"p", sample.program.params, seq({})}), "output C is never written");
}

TEST_CASE("verify wants the buffers of an attached init to live where it runs") {
  MatmulSample sample;
  Buffer T{"T", f32, {37, 16}};
  Stage stage = sample.stage;
  stage.outputs = {T};
  const auto tree = [&](bool inside) {
    Stmt body = loop(sample.jl, 16, make_stmt(stage));
    if (inside) body = make_stmt(Allocate{T, body});
    body = loop(sample.kl, 8, body, AxisKind::reduce);
    if (!inside) body = make_stmt(Allocate{T, body});
    return broken({"p", {{sample.A}, {sample.B}}, loop(sample.io, 7, loop(sample.ii, 6, body))});
  };
  CHECK(tree(false) == "");
  CHECK_BROKEN(tree(true),
               "stage C: its init runs above reduction loop k, inside which buffer T is allocated");
}

TEST_CASE("verify checks the types inside expressions") {
  Var x("x"), y("y", {i32, 1});
  Expr mixed = make_expr({i64, 1}, Binary{BinaryOp::add, x, y});
  CHECK_BROKEN(broken_stage([&](auto& m, Stage& s) {
                 s.axes[1].value = mixed;
                 (void)m;
               }),
               "the right operand has type i32 and must have i64");
  Expr wide = make_expr({i8, 1}, IntImm{300});
  CHECK_BROKEN(broken_stage([&](auto&, Stage& s) {
                 s.values = {make_expr({f32, 1}, Cast{wide})};
               }),
               "a literal outside its type");
  Expr vector = ramp(Expr(0), 1, 4);
  CHECK_BROKEN(broken_stage([&](auto& m, Stage& s) { s.spatial_guard = vector < Expr(m.io); }),
               "a loop tree has no vectors");
}

TEST_CASE("verify knows the rules of flat code") {
  Buffer A = vec();
  Var i("i"), j("j");
  Expr at = ramp(Expr(i) * 4, 1, 4);
  Stmt copy = make_stmt(Store{A, {at}, load(A, {at}), {}});
  CHECK(broken_flat(A, loop(i, 4, copy)).empty());
  CHECK_BROKEN(broken_flat(A, loop(i, 4, copy, AxisKind::spatial, LoopMark::vectorize)),
               "loop i is still to be vectorised");
  Stmt inner = loop(i, 4, copy, AxisKind::spatial, LoopMark::parallel);
  CHECK_BROKEN(broken_flat(A, loop(j, 4, inner, AxisKind::spatial, LoopMark::parallel)),
               "parallel loop i lies inside a parallel loop");
  CHECK_BROKEN(broken_flat(A, loop(i, 4, make_stmt(Store{A, {Expr(i)}, load(A, {at}), {}}))),
               "index i of a store needs i64 and 4 lanes");
  Buffer matrix("M", f32, {4, 4});
  CHECK_BROKEN(broken_flat(matrix, seq({})), "buffer M has rank 2");
  CHECK_BROKEN(broken_flat(A, MatmulSample().program.body), "flat code has no stages");
}

TEST_CASE("register buffers take whole vectors at places known after unrolling") {
  Buffer A = vec(), R("R", f32, {64}, Scope::reg);
  Var i("i");
  auto fill = [&](Expr at, LoopMark mark) {
    Expr value = at.lanes() > 1 ? broadcast(float_imm(0), at.lanes()) : float_imm(0);
    Stmt body = seq(
        {make_stmt(Store{R, {at}, value, {}}), make_stmt(Store{A, {Expr(0)}, float_imm(1), {}})});
    return broken_flat(A, make_stmt(Allocate{R, loop(i, 4, body, AxisKind::spatial, mark)}));
  };
  CHECK(fill(ramp(Expr(i) * 4, 1, 4), LoopMark::unroll).empty());
  CHECK_BROKEN(fill(ramp(Expr(i) * 4, 1, 4), LoopMark::serial),
               "register buffer R is indexed by \"i\", which is no unrolled loop");
  CHECK_BROKEN(fill(ramp(Expr(i), 2, 4), LoopMark::unroll),
               "register buffer R needs whole vectors");
  CHECK_BROKEN(fill(Expr(3), LoopMark::parallel),
               "register buffer R is used inside parallel loop i, but allocated outside");
}

TEST_CASE("an output of no elements need not be written") {
  CHECK(broken_flat(Buffer("out", f32, {0}), Stmt()).empty());
  CHECK_BROKEN(broken_flat(Buffer("out", f32, {1}), Stmt()), "output out is never written");
}
