#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "samples.h"

using namespace tenon;

TEST_CASE("a loop tree prints its loops, marks, guards and init") {
  CHECK(print(MatmulSample().program) == R"(program matmul
input A[37,8] f32
input B[8,16] f32
output C[37,16] f32
stage C[37,16] f32
  for i.o in 0..7  parallel
    for i.i in 0..6
      for k in 0..8  reduce
        for j in 0..16  vectorize
          where i.o * 6 + i.i < 37
          init C[i.o*6+i.i, j] = 0.0
          C[i.o*6+i.i, j] += A[i.o*6+i.i, k] * B[k, j]
)");
}

TEST_CASE("the margin marks a loop by its full name") {
  std::string text = print(MatmulSample().program, {.mark_loop = "C:i.i"});
  CHECK(text.find("\n>     for i.i in 0..6\n") != std::string::npos);
  CHECK(text.find("\n    for i.o in 0..7  parallel\n") != std::string::npos);
}

TEST_CASE("headings stand where a subtree has one stage, and a last Allocate does not indent") {
  Buffer T("T", f32, {8}, Scope::reg), C("C", f32, {8});
  Var o("i.o"), p("i"), q("i"), i("i"), j("i");
  Stage produce{.name = "T",
                .axes = {{Axis(i, 8), AxisKind::spatial, p}},
                .outputs = {T},
                .indices = {i},
                .values = {float_imm(1)}};
  Stage consume{.name = "C",
                .axes = {{Axis(j, 8), AxisKind::spatial, Expr(o) * 4 + Expr(q)}},
                .outputs = {C},
                .indices = {j},
                .values = {load(T, {j})}};
  Stmt body = seq({loop(p, 8, make_stmt(produce)), loop(q, 4, make_stmt(consume))});
  Program program{"chain", {{C, ParamRole::output}}, loop(o, 2, make_stmt(Allocate{T, body}))};
  CHECK(print(program) == R"(program chain
output C[8] f32
for i.o in 0..2
  allocate T[8] f32 register
  stage T[8] f32 register
    for i in 0..8
      T[i] = 1.0
  stage C[8] f32
    for i in 0..4
      C[i.o*4+i] = T[i.o*4+i]
)");
  CHECK(verify_errors(program, Form::LoopTree).empty());
}

TEST_CASE("names of different variables in scope never print alike") {
  Var outer("i"), inner("i");
  Buffer C("C", i64, {8}), other("C", i64, {8});
  Stmt store = make_stmt(Store{C, {Expr(outer) + Expr(inner)}, load(other, {outer}), {}});
  CHECK(print(loop(outer, 4, loop(inner, 4, store))) ==
        "for i in 0..4\n  for i~2 in 0..4\n    C[i+i~2] = C~2[i]\n");
}

TEST_CASE("expressions print with the brackets their order needs, and literals round-trip") {
  Var x("x"), y("y"), b("b", {boolean, 1}), h("h", {f16, 1}), s("s", {i32, 1});
  CHECK(print(Expr(x) - (Expr(y) - 1)) == "x - (y - 1)");
  CHECK(print((Expr(x) - Expr(y)) - 1) == "x - y - 1");
  CHECK(print(floor_div(Expr(x) * 3, 4)) == "x * 3 // 4");
  CHECK(print(Expr(x) * floor_div(3 * Expr(x), 4)) == "x * (3 * x // 4)");
  CHECK(print((Expr(x) < Expr(y)) && !Expr(b)) == "x < y && !b");
  CHECK(print(-(Expr(x) + 1)) == "-(x + 1)");
  CHECK(print(max(Expr(x), trunc_div(Expr(y), 2))) == "max(x, trunc_div(y, 2))");
  CHECK(print(Expr(h) + 0.5) == "h + 0.5:f16");
  CHECK(print(Expr(s) + 7) == "s + 7:i32");
  CHECK(print(cast(f32, x)) == "f32(x)");
  CHECK(print(float_imm(0.1)) == "0.1");
  CHECK(print(float_imm(3)) == "3.0");
  CHECK(print(float_imm(-std::numeric_limits<double>::infinity())) == "-inf");
  CHECK(print(float_imm(std::nan(""), f64)) == "nan:f64");
  CHECK(print(float_imm(0.1, f64)) == "0.1:f64");
  CHECK(print(int_imm(-1, u64)) == "18446744073709551615:u64");
  CHECK(print(bool_imm(true)) == "true");
}

TEST_CASE("flat code prints vectors, masks, lets and barriers") {
  Buffer A("A", f32, {64});
  Var t("t"), m("m", {boolean, 4});
  Expr at = ramp(Expr(t) * 4, 1, 4);
  Stmt store = make_stmt(Store{A, {at}, load(A, {at}, m), m});
  Stmt body = make_stmt(LetStmt{m, at < broadcast(Expr(9), 4), store});
  Stmt all = seq(
      {make_stmt(Barrier{}),
       make_stmt(For{t,
                     int_imm(2),
                     int_imm(3),
                     AxisKind::spatial,
                     LoopMark::unroll,
                     {{"partition", 1}},
                     body}),
       make_stmt(Store{
           A, {Expr(0)}, vector_reduce(BinaryOp::add, load(A, {ramp(Expr(0), 1, 4)})), {}, true}),
       make_stmt(If{Expr(t) < 1, make_stmt(Evaluate{shuffle(at, {0, 2})}), make_stmt(Barrier{})})});
  CHECK(print(all) == R"(barrier
for t in 2..5  unroll  partition=1
  let m = ramp(t * 4, 1, 4) < broadcast(9, 4)
  A[ramp(t*4, 1, 4); m] = A[ramp(t*4, 1, 4); m]
atomic A[0] = reduce_add(A[ramp(0, 1, 4)])
if t < 1
  evaluate shuffle(ramp(t * 4, 1, 4), [0, 2])
else
  barrier
)");
}

TEST_CASE("what changes the meaning changes the hash, and the program's name does not") {
  MatmulSample sample;
  std::string hash = program_hash(sample.program);
  CHECK(hash.size() == 16);
  Program renamed = sample.program;
  renamed.name = "other";
  CHECK(program_hash(renamed) == hash);

  auto differs = [&](auto change) {
    Stage stage = sample.stage;
    change(stage);
    Program changed{"matmul", sample.program.params, sample.tree(stage)};
    return program_hash(changed) != hash;
  };
  CHECK(differs([](Stage& s) { s.spatial_guard = {}; }));
  CHECK(differs([](Stage& s) { s.reduce_guard = Expr(0) < 1; }));
  CHECK(differs([](Stage& s) { s.init = {float_imm(1e-30)}; }));
  CHECK(differs([](Stage& s) { s.init.clear(); }));
  CHECK(differs([](Stage& s) { s.combiner = max_combiner(f32); }));
  CHECK(differs([](Stage& s) {
    s.combiner = nullptr;
    s.init.clear();
  }));
  CHECK(differs([](Stage& s) { s.values[0] = s.values[0] + 0.0; }));
  CHECK(differs([](Stage& s) { s.values[0] = float_imm(1); }));
  Program constant = sample.program;
  constant.params[1].role = ParamRole::constant;
  CHECK(program_hash(constant) != hash);
}

TEST_CASE("an axis that the body never mentions leaves its binding in the text") {
  MatmulSample sample;
  Stage stage = sample.stage;
  stage.values = {float_imm(1)};
  CHECK(print(make_stmt(stage)).find("over k = k\n") != std::string::npos);
}

TEST_CASE("the family hash ignores extents and shapes only") {
  auto family = [](int64_t n, LoopMark mark) {
    Var i("i"), l("i");
    Buffer C("C", f32, {Expr(n)});
    Stage stage{.name = "C",
                .axes = {{Axis(i, Expr(n)), AxisKind::spatial, l}},
                .outputs = {C},
                .indices = {i},
                .values = {float_imm(2)}};
    return Program{
        "c", {{C, ParamRole::output}}, loop(l, n, make_stmt(stage), AxisKind::spatial, mark)};
  };
  Program a = family(8, LoopMark::serial), b = family(12, LoopMark::serial);
  CHECK(program_hash(a) != program_hash(b));
  CHECK(family_hash(a) == family_hash(b));
  CHECK(family_hash(a) != family_hash(family(8, LoopMark::parallel)));
}

TEST_CASE("a combiner that is not built in prints its definition") {
  Var a0("a0", {i64, 1}), b0("b0", {i64, 1});
  auto keep_last = std::make_shared<const Combiner>(
      Combiner{"last", {a0}, {b0}, {Expr(b0)}, {int_imm(0)}, false});
  Buffer C("C", i64, {});
  Var k("k"), l("k");
  Stage stage{.name = "C",
              .axes = {{Axis(k, 4), AxisKind::reduce, l}},
              .outputs = {C},
              .values = {k},
              .combiner = keep_last};
  std::string text = print(make_stmt(stage));
  CHECK(text.find("combiner last(a0; b0) = (b0) identity (0)  ordered\n") != std::string::npos);
  CHECK(text.find("C[] last= k\n") != std::string::npos);
}

TEST_CASE("a program that binds a variable twice on one path is still printed") {
  Buffer A("A", f32, {4});
  Var i("i");
  const Stmt store = make_stmt(Store{A, {i}, float_imm(0), {}});
  const auto round = [&](Stmt body) {
    For loop;
    loop.var = i;
    loop.min = int_imm(0);
    loop.extent = int_imm(4);
    loop.body = std::move(body);
    return make_stmt(std::move(loop));
  };
  const Program twice{"twice", {{A, ParamRole::output}}, round(round(store))};
  CHECK_THAT(print(twice), Catch::Contains("for i in 0..4"));
  CHECK_THROWS_WITH(verify(twice, Form::LoopTree), Catch::Contains("bound twice on one path"));
}
