#include <catch2/catch.hpp>

#include "run.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

Stmt put(const Buffer& b, const Expr& at, const Expr& value) {
  return make_stmt(Store{b, {at}, value, {}});
}
Stmt barrier() { return make_stmt(Barrier{}); }

/// The program over one output of n i64 elements.
std::vector<double> run_flat(const Buffer& out, int64_t n, const Stmt& body) {
  Memory memory(i64, static_cast<size_t>(n));
  const Program p{"block", {{out, ParamRole::output}}, body};
  CHECK(verify_errors(p, Form::Flat).empty());
  run(p, {&memory});
  return memory.all();
}

}  // namespace

TEST_CASE("threads exchange values through shared memory at a barrier") {
  const Var t("t");
  const Expr T(t);
  const Buffer out("out", i64, {Expr(4)}), s("S", i64, {Expr(4)}, Scope::shared);
  const auto body = [&](bool with_barrier) {
    std::vector<Stmt> parts = {put(s, T, T * 10)};
    if (with_barrier) parts.push_back(barrier());
    parts.push_back(put(out, T, load(s, {3 - T})));
    return make_stmt(Allocate{s, loop(t, 4, seq(parts), LoopMark::thread_x)});
  };
  CHECK(run_flat(out, 4, body(true)) == std::vector<double>{30, 20, 10, 0});
  CHECK_THROWS_WITH(run_flat(out, 4, body(false)),
                    Contains("never written") || Contains("thread_x"));
}

TEST_CASE("a loop round a barrier needs one against the next iteration too") {
  const Var t("t"), k("k");
  const Expr T(t), K(k);
  const Buffer out("out", i64, {Expr(4)}), s("S", i64, {Expr(4)}, Scope::shared);
  const auto body = [&](bool second) {
    std::vector<Stmt> parts = {put(s, T, T + K), barrier(), put(out, T, load(s, {3 - T}))};
    if (second) parts.push_back(barrier());
    return make_stmt(Allocate{s, loop(t, 4, loop(k, 3, seq(parts)), LoopMark::thread_x)});
  };
  CHECK(run_flat(out, 4, body(true)) == std::vector<double>{5, 4, 3, 2});
  CHECK_THROWS_WITH(run_flat(out, 4, body(false)), Contains("thread_x loop \"t\""));
}

TEST_CASE("a barrier that not all threads reach is an error") {
  const Var t("t"), k("k");
  const Expr T(t);
  const Buffer out("out", i64, {Expr(4)});
  const Stmt divergent = make_stmt(If{T < 2, seq({put(out, T, T), barrier(), put(out, T, T)}), {}});
  CHECK_THROWS_WITH(run_flat(out, 4, loop(t, 4, divergent, LoopMark::thread_x)),
                    Contains("a barrier that not all threads reach: a condition is 1 in thread 0 "
                             "and 0 in thread 2"));
  const Stmt uneven = loop(k, T, seq({put(out, T, T), barrier()}));
  CHECK_THROWS_WITH(run_flat(out, 4, loop(t, 4, uneven, LoopMark::thread_x)),
                    Contains("the length of a loop is 0 in thread 0 and 1 in thread 1"));
}

TEST_CASE("local memory and lets are a thread's own, across barriers and three axes") {
  const Var x("x"), y("y"), v("v");
  const Expr X(x), Y(y);
  const Buffer out("out", i64, {Expr(6)}), own("own", i64, {Expr(1)}, Scope::local);
  const Stmt inside = seq(
      {put(own, 0, X * 10 + Y), barrier(), put(out, X * 2 + Y, load(own, {Expr(0)}) + Expr(v))});
  const Stmt body = make_stmt(LetStmt{v, X * 100, make_stmt(Allocate{own, inside})});
  CHECK(run_flat(out, 6, loop(x, 3, loop(y, 2, body, LoopMark::thread_x), LoopMark::thread_y)) ==
        std::vector<double>{0, 1, 110, 111, 220, 221});
}

TEST_CASE("two blocks may not meet on an element") {
  const Var b("b"), t("t");
  const Expr B(b), T(t);
  const Buffer out("out", i64, {Expr(4)});
  const Stmt inside = seq({put(out, T, B), barrier()});
  CHECK_THROWS_WITH(
      run_flat(out, 4, loop(b, 2, loop(t, 4, inside, LoopMark::thread_x), LoopMark::block_x)),
      Contains("block_x loop \"b\""));
}
