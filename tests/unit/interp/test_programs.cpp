#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "run.h"

using namespace tenon;

namespace {

using V = std::vector<double>;

/// C = A B over m x n x k int32, i split by f with a guard; the reduce loop's place and marks as
/// asked.
struct Matmul {
  int64_t m, n, k;
  Var i{"i"}, j{"j"}, r{"k"}, io{"i.o"}, ii{"i.i"}, jl{"j"}, kl{"k"};
  Buffer A, B, C;
  Stage stage;

  Matmul(int64_t m, int64_t n, int64_t k, int64_t f, DType t = i32)
      : m(m),
        n(n),
        k(k),
        A("A", t, {Expr(m), Expr(k)}),
        B("B", t, {Expr(k), Expr(n)}),
        C("C", t, {Expr(m), Expr(n)}) {
    stage.name = "C";
    stage.axes = {{Axis(i, m), AxisKind::spatial, Expr(io) * f + Expr(ii)},
                  {Axis(j, n), AxisKind::spatial, jl},
                  {Axis(r, k), AxisKind::reduce, kl}};
    if (m % f != 0) stage.spatial_guard = Expr(io) * f + Expr(ii) < Expr(m);
    stage.outputs = {C};
    stage.indices = {i, j};
    stage.values = {load(A, {i, r}) * load(B, {r, j})};
    stage.combiner = sum_combiner(t);
    stage.init = {imm(5, t)};
  }
  Program program(Stmt body) const {
    return {"matmul", {{A}, {B}, {C, ParamRole::output}}, std::move(body)};
  }
  Memory input(int64_t rows, int64_t columns, int seed) const {
    Memory out(A->dtype, static_cast<size_t>(rows * columns));
    for (size_t e = 0; e < static_cast<size_t>(rows * columns); ++e) {
      auto value = static_cast<int64_t>((e * 7 + static_cast<size_t>(seed)) % 11) - 5;
      write_element(out.at(e), A->dtype, convert(int_value(value), i64, A->dtype));
    }
    return out;
  }
  void check(const Stmt& body, const InterpOptions& options = {}) const {
    Memory a = input(m, k, 1), b = input(k, n, 4), c(C->dtype, static_cast<size_t>(m * n));
    run(program(body), {&a, &b, &c}, options);
    for (int64_t x = 0; x < m; ++x) {
      for (int64_t y = 0; y < n; ++y) {
        double sum = 5;
        for (int64_t z = 0; z < k; ++z) {
          sum += a.get(static_cast<size_t>(x * k + z)) * b.get(static_cast<size_t>(z * n + y));
        }
        REQUIRE(c.get(static_cast<size_t>(x * n + y)) == sum);
      }
    }
  }
};

Buffer vec(std::string name, int64_t n, DType t = f32, Scope scope = Scope::global) {
  return Buffer(std::move(name), t, {Expr(n)}, scope);
}

/// Runs a body over one output buffer of n i64.
V run_output(const Buffer& out, const Stmt& body, const InterpOptions& options = {}) {
  Memory memory(out->dtype, static_cast<size_t>(*as_int(out->shape[0])));
  run({"p", {{out, ParamRole::output}}, body}, {&memory}, options);
  return memory.all();
}

const Var x("x"), y("y"), z("z");
const Expr X = x, Y = y;

Stmt store(const Buffer& b, Expr at, Expr value, Expr mask = {}) {
  return make_stmt(Store{b, {std::move(at)}, std::move(value), std::move(mask)});
}

}  // namespace

TEST_CASE("an attached init runs above the outermost reduce loop, whatever the order of loops") {
  Matmul s(7, 5, 4, 3);
  Stmt leaf = make_stmt(s.stage);
  auto reduce_loop = [&](Stmt body) {
    return loop(s.kl, 4, body, LoopMark::serial, AxisKind::reduce);
  };
  s.check(loop(s.io, 3, loop(s.ii, 3, loop(s.jl, 5, reduce_loop(leaf)))));
  s.check(loop(s.io, 3, reduce_loop(loop(s.ii, 3, loop(s.jl, 5, leaf)))));
  s.check(reduce_loop(loop(s.jl, 5, loop(s.io, 3, loop(s.ii, 3, leaf)))));
  s.check(
      loop(s.io, 3,
           reduce_loop(loop(s.ii, 3, loop(s.jl, 5, leaf, LoopMark::vectorize), LoopMark::unroll)),
           LoopMark::parallel));
}

TEST_CASE("an empty reduction still writes its init, and a reduce guard leaves the init alone") {
  Matmul empty(3, 2, 0, 3);
  empty.check(
      loop(empty.io, 1,
           loop(empty.ii, 3, loop(empty.kl, 0, loop(empty.jl, 2, make_stmt(empty.stage))))));
  Matmul guarded(3, 2, 3, 3);
  guarded.stage.reduce_guard = Expr(guarded.kl) < Expr(3);
  guarded.check(loop(
      guarded.io, 1,
      loop(guarded.ii, 3, loop(guarded.kl, 5, loop(guarded.jl, 2, make_stmt(guarded.stage))))));
}

TEST_CASE("an attached init above its buffer's Allocate is refused in words") {
  Matmul t(2, 3, 4, 2);
  Buffer T("T", i32, {2, 3});
  Stage stage = t.stage;
  stage.outputs = {T};
  Stmt body = loop(t.jl, 3, loop(t.io, 1, loop(t.ii, 2, make_stmt(stage))));
  body = loop(t.kl, 4, make_stmt(Allocate{T, body}), LoopMark::serial, AxisKind::reduce);
  Memory a = t.input(2, 4, 1), b = t.input(4, 3, 2);
  CHECK_THROWS_AS(run({"p", {{t.A}, {t.B}}, body}, {&a, &b}), InternalError);
  CHECK_THROWS_WITH(run({"p", {{t.A}, {t.B}}, body}, {&a, &b}),
                    Catch::Contains("buffer T is used outside its Allocate"));
}

TEST_CASE("a reduction without reduce loops starts at its leaf") {
  Buffer C = vec("C", 3, i64);
  Var i("i");
  Stage stage{.name = "C",
              .axes = {{Axis(i, 3), AxisKind::spatial, x}},
              .outputs = {C},
              .indices = {i},
              .values = {i},
              .combiner = sum_combiner(i64),
              .init = {int_imm(100)}};
  CHECK(run_output(C, loop(x, 3, make_stmt(stage))) == V{100, 101, 102});
}

TEST_CASE("tuple reductions update all outputs at once") {
  Var i("i"), k("k"), a0("a0", {i64, 1}), a1("a1"), b0("b0", {i64, 1}), b1("b1");
  Buffer A = vec("A", 5, i64), M = vec("M", 1, i64), N = vec("N", 1, i64);
  Expr better = (Expr(b0) > Expr(a0)) || ((Expr(b0) == Expr(a0)) && (Expr(b1) < Expr(a1)));
  auto argmax =
      std::make_shared<const Combiner>(Combiner{"argmax",
                                                {a0, a1},
                                                {b0, b1},
                                                {select(better, b0, a0), select(better, b1, a1)},
                                                {int_imm(INT64_MIN), int_imm(INT64_MAX)}});
  Stage stage{.name = "M",
              .axes = {{Axis(i, 1), AxisKind::spatial, x}, {Axis(k, 5), AxisKind::reduce, y}},
              .outputs = {M, N},
              .indices = {i},
              .values = {load(A, {k}), k},
              .combiner = argmax,
              .init = argmax->identity};
  Memory a(i64, V{3, 9, 9, -1, 9}), m(i64, 1), n(i64, 1);
  run({"p",
       {{A}, {M, ParamRole::output}, {N, ParamRole::output}},
       loop(x, 1, loop(y, 5, make_stmt(stage)))},
      {&a, &m, &n});
  CHECK(m.get(0) == 9);
  CHECK(n.get(0) == 1);
}

TEST_CASE("formulas from te run as written, symbolic extents included") {
  Tensor a = input("a", f32, {4}), b = input("b", f32, {4});
  Axis i("i", 4), k("k", 4);
  Tensor c = compute("c", {i}, sum(a(k), k) * b(i) + 1.0);
  Memory ma(f32, V{1, 2, 3, 4}), mb(f32, V{1, 0, -1, 2}), mc(f32, 4);
  run(make_program("p", {c}), {&ma, &mb, &mc});
  CHECK(mc.all() == V{11, 1, -9, 21});

  Var n = symbol("n", {.low = 1, .high = 9}), e("e");
  Buffer S("S", i64, {Expr(n)});
  Memory s(i64, 6);
  const Program p{
      "p", {{S, ParamRole::output}}, loop(e, n, store(S, e, Expr(n) * 10 + Expr(e))), {n}};
  run(p, {&s}, {.dims = {{"n", 6}}});
  CHECK(s.all() == V{60, 61, 62, 63, 64, 65});
  CHECK_THROWS_WITH(run(p, {&s}), Catch::Contains("no value for the symbolic extent \"n\" of p"));
  CHECK_THROWS_WITH(run(p, {&s}, {.dims = {{"n", 10}}}),
                    Catch::Contains("n = 10 is outside of its range [1, 9]"));
}

TEST_CASE("flat statements: lets, ifs, masked vectors, temporaries, loops that start elsewhere") {
  Buffer out = vec("out", 8, i64), T = vec("T", 8, i64);
  Var m("m", {boolean, 4}), v("v", {i64, 4});
  Expr at = ramp(X * 4, 1, 4);
  Stmt vectors = make_stmt(LetStmt{
      m, at < broadcast(Expr(7), 4),
      make_stmt(LetStmt{v, at * 10, seq({store(T, at, v, m), store(out, at, load(T, {at}, m))})})});
  Program p{"p", {{out, ParamRole::output}}, make_stmt(Allocate{T, loop(x, 2, vectors)})};
  Memory memory(i64, 8);
  run(p, {&memory});
  CHECK(memory.all() == V{0, 10, 20, 30, 40, 50, 60, 0});

  Stmt parity = make_stmt(If{floor_mod(X, 2) == Expr(0), store(out, X, X), store(out, X, -X)});
  Stmt late =
      make_stmt(For{x, int_imm(2), int_imm(6), AxisKind::spatial, LoopMark::serial, {}, parity});
  CHECK(run_output(out, late) == V{0, 0, 2, -3, 4, -5, 6, -7});
  Stmt sums =
      seq({store(out, 0, 1), make_stmt(Barrier{}), make_stmt(Evaluate{load(out, {Expr(0)})}),
           make_stmt(Store{out, {Expr(0)}, load(out, {Expr(0)}) + 4, {}, true})});
  CHECK(run_output(out, sums)[0] == 5);
}

TEST_CASE("only the chosen side of a select is read") {
  Buffer A = vec("A", 4, i64), out = vec("out", 6, i64);
  Memory a(i64, V{1, 2, 3, 4}), o(i64, 6);
  Expr inside = (X >= Expr(1)) && (X < Expr(5));
  run({"p",
       {{A}, {out, ParamRole::output}},
       loop(x, 6, store(out, x, select(inside, load(A, {X - 1}), Expr(0))))},
      {&a, &o});
  CHECK(o.all() == V{0, 1, 2, 3, 4, 0});
  Expr r = ramp(Expr(0), 1, 6), from = r - 1;
  Expr on = (from >= broadcast(Expr(0), 6)) && (from < broadcast(Expr(4), 6));
  run({"p",
       {{A}, {out, ParamRole::output}},
       store(out, r, select(on, load(A, {from}), broadcast(Expr(9), 6)))},
      {&a, &o});
  CHECK(o.all() == V{9, 1, 2, 3, 4, 9});
}

TEST_CASE("a buffer allocated inside a loop is new each time") {
  Buffer T = vec("T", 1, i64), out = vec("out", 3, i64);
  Stmt writes = seq({store(T, 0, X), store(out, x, load(T, {Expr(0)}))});
  CHECK(run_output(out, loop(x, 3, make_stmt(Allocate{T, writes}), LoopMark::parallel)) ==
        V{0, 1, 2});
  Stmt stale = make_stmt(If{X == Expr(0), store(T, 0, 5)});
  Stmt reads = seq({stale, store(out, x, load(T, {Expr(0)}))});
  CHECK_THROWS_WITH(
      run_output(out, loop(x, 3, make_stmt(Allocate{T, reads}))),
      Catch::Contains("reads T[0], which was never written") && Catch::Contains("with x = 1"));
}

TEST_CASE("out of bounds names the buffer, the dimension, the statement and the loops") {
  Buffer A = vec("A", 4, i64), out("out", i64, {4, 2});
  Memory a(i64, 4), o(i64, 8);
  Stmt body = make_stmt(Store{out, {X, Y}, load(A, {X + 1}), {}});
  CHECK_THROWS_WITH(
      run({"p", {{A}, {out, ParamRole::output}}, loop(x, 4, loop(y, 2, body))}, {&a, &o}),
      Catch::Contains("reads A[4] out of bounds: dimension 0 has extent 4") &&
          Catch::Contains("in out[x, y] = A[x+1]") && Catch::Contains("with x = 3, y = 0"));
  Stmt beyond = make_stmt(Store{out, {X, Y + 1}, Expr(1), {}});
  CHECK_THROWS_WITH(run({"p", {{out, ParamRole::output}}, loop(x, 4, loop(y, 2, beyond))}, {&o}),
                    Catch::Contains("writes out[0, 2] out of bounds: dimension 1 has extent 2"));
  Stmt vector = store(A, ramp(Expr(2), 1, 4), broadcast(Expr(1), 4));
  CHECK_THROWS_WITH(run({"p", {{A, ParamRole::output}}, vector}, {&a}),
                    Catch::Contains("writes A[4] out of bounds"));
}

TEST_CASE("race mode: two iterations write one element") {
  Buffer out = vec("out", 8, i64);
  for (LoopMark mark : {LoopMark::parallel, LoopMark::vectorize}) {
    CHECK_THROWS_WITH(
        run_output(out, loop(x, 4, store(out, floor_div(X, 2), X), mark)),
        Catch::Contains("race on out[0] in " + std::string(name(mark)) +
                        " loop \"x\": iteration 0 writes it and iteration 1 writes it"));
  }
  CHECK_NOTHROW(run_output(out, loop(x, 4, store(out, floor_div(X, 2), X))));
  CHECK_NOTHROW(run_output(out, loop(x, 4, store(out, floor_div(X, 2), X), LoopMark::parallel),
                           {.race_mode = false}));
  CHECK_NOTHROW(run_output(out, loop(x, 4, store(out, floor_div(X, 2), X), LoopMark::unroll)));
}

TEST_CASE("race mode: one iteration writes what another reads, in either order") {
  Buffer out = vec("out", 8, i64);
  Stmt fill = loop(y, 8, store(out, y, 0));
  Stmt chain = loop(x, 7, store(out, X + 1, load(out, {X}) + 1), LoopMark::parallel);
  CHECK_THROWS_WITH(run_output(out, seq({fill, chain})),
                    Catch::Contains("iteration 0 writes it and iteration 1 reads it"));
  Stmt back = loop(x, 7, store(out, X, load(out, {X + 1}) + 1), LoopMark::parallel);
  CHECK_THROWS_WITH(run_output(out, seq({fill, back})),
                    Catch::Contains("iteration 0 reads it and iteration 1 writes it"));
  Stmt own = loop(x, 8, store(out, X, load(out, {X}) + 1), LoopMark::parallel);
  CHECK_NOTHROW(run_output(out, seq({fill, own, own})));
}

TEST_CASE("race mode remembers that several iterations read what a later one of them writes") {
  Buffer out = vec("out", 4, i64), T = vec("T", 4, i64);
  Stmt fill = loop(y, 4, store(out, y, 0));
  // Iterations 0 to 3 read T[0]; iteration 3 reads it last and then writes it.
  Stmt body = seq({store(out, X, load(T, {Expr(0)})), make_stmt(If{X == Expr(3), store(T, 0, 7)})});
  Stmt all =
      make_stmt(Allocate{T, seq({fill, store(T, 0, 1), loop(x, 4, body, LoopMark::parallel)})});
  CHECK_THROWS_WITH(run_output(out, all),
                    Catch::Contains("several iterations read it and iteration 3 writes it"));
}

TEST_CASE(
    "race mode: a temporary shared by parallel iterations, a reduction over a parallel loop") {
  Buffer T = vec("T", 1, i64), out = vec("out", 4, i64);
  Stmt shared = seq({store(T, 0, X), store(out, x, load(T, {Expr(0)}))});
  CHECK_THROWS_WITH(run_output(out, make_stmt(Allocate{T, loop(x, 4, shared, LoopMark::parallel)})),
                    Catch::Contains("race on T[0]"));
  Matmul s(4, 4, 4, 4);
  Stmt tree = loop(
      s.io, 1,
      loop(s.ii, 4,
           loop(s.kl, 4, loop(s.jl, 4, make_stmt(s.stage)), LoopMark::parallel, AxisKind::reduce)));
  CHECK_THROWS_WITH(s.check(tree), Catch::Contains("race on C[0, 0] in parallel loop \"k\""));
}

TEST_CASE("race mode: inner loops one after the other are ordered, outer iterations are not") {
  Buffer out = vec("out", 4, i64), T = vec("T", 4, i64);
  Stmt produce = loop(y, 4, store(T, y, Y), LoopMark::vectorize);
  Stmt consume = loop(z, 4, store(out, z, load(T, {3 - Expr(z)})), LoopMark::vectorize);
  CHECK(run_output(out, make_stmt(Allocate{T, loop(x, 2, seq({produce, consume}))})) ==
        V{3, 2, 1, 0});
  CHECK_THROWS_WITH(
      run_output(out,
                 make_stmt(Allocate{T, loop(x, 2, seq({produce, consume}), LoopMark::parallel)})),
      Catch::Contains("parallel loop \"x\": iteration 0 "));
}

TEST_CASE("race mode: atomic updates do not conflict with each other, but with plain ones") {
  Buffer out = vec("out", 2, i64);
  Stmt start = seq({store(out, 0, 0), store(out, 1, 0)});
  Stmt add = make_stmt(Store{out, {floor_mod(X, 2)}, load(out, {floor_mod(X, 2)}) + 1, {}, true});
  CHECK(run_output(out, seq({start, loop(x, 10, add, LoopMark::parallel)})) == V{5, 5});
  Stmt mixed = make_stmt(If{X == Expr(9), store(out, 0, 3), add});
  CHECK_THROWS_WITH(run_output(out, seq({start, loop(x, 10, mixed, LoopMark::parallel)})),
                    Catch::Contains("race on out[0]"));
}

TEST_CASE("a vector store whose lanes meet is refused") {
  Buffer out = vec("out", 8, i64);
  Expr same = floor_div(ramp(Expr(0), 1, 4), broadcast(Expr(2), 4));
  CHECK_THROWS_WITH(run_output(out, store(out, same, ramp(Expr(0), 1, 4))),
                    Catch::Contains("lanes 0 and 1 both write out[0]"));
  Expr even = floor_mod(ramp(Expr(0), 1, 4), broadcast(Expr(2), 4)) == broadcast(Expr(0), 4);
  CHECK_NOTHROW(run_output(out, store(out, same, ramp(Expr(0), 1, 4), even)));
}

TEST_CASE("an output read before it is written, a step limit, a wrong argument count") {
  Buffer out = vec("out", 4, i64);
  CHECK_THROWS_WITH(run_output(out, store(out, 0, load(out, {Expr(1)}))),
                    Catch::Contains("reads out[1], which was never written"));
  CHECK_THROWS_WITH(run_output(out, loop(x, 4, store(out, x, 1)), {.max_steps = 3}),
                    Catch::Contains("too many statements"));
  CHECK_NOTHROW(run_output(out, loop(x, 4, store(out, x, 1)), {.max_steps = 4}));
  CHECK_THROWS_WITH(interpret({"p", {{out, ParamRole::output}}, Stmt()}, {}),
                    Catch::Contains("0 arguments for the 1 parameters"));
}

TEST_CASE("a million multiply-adds take a moment") {
  Matmul s(100, 100, 100, 100, f32);
  Stmt tree = loop(s.io, 1,
                   loop(s.ii, 100,
                        loop(s.kl, 100, loop(s.jl, 100, make_stmt(s.stage), LoopMark::vectorize),
                             LoopMark::serial, AxisKind::reduce),
                        LoopMark::parallel));
  for (bool race_mode : {false, true}) {
    Memory a = s.input(100, 100, 1), b = s.input(100, 100, 2), c(f32, 10000);
    auto start = std::chrono::steady_clock::now();
    run(s.program(tree), {&a, &b, &c}, {.race_mode = race_mode});
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    INFO((race_mode ? "race mode " : "plain ") << took.count() << " s");
    CHECK(took.count() < 5);  // 0.2 and 0.4 s on an idle machine
  }
}
