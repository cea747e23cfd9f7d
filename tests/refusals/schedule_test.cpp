#include <catch2/catch.hpp>

#include <tenon/ir/ops.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>

#include "tests/unit/schedule/schedule_formulas.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

Schedule matmul(int64_t m = 12, int64_t n = 20, int64_t depth = 6) {
  return {Matmul(m, n, depth).program(), wide_target()};
}

/// P = 2*X, C = P shifted, D = C + 1, all over 32 points (P over 34).
Schedule chain() {
  const Tensor x = input("X", f32, {34});
  const Axis a("a", 34), i("i", 32), l("l", 32);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  const Tensor c = compute("C", {i}, p(i) + p(Expr(i) + int_imm(2)));
  const Tensor d = compute("D", {l}, c(l) + Expr(1.0));
  return {make_program("chain", {d}), wide_target()};
}

/// Keeps the later of two values.
Schedule ordered() {
  const Tensor x = input("X", i32, {4, 6});
  const Var a("a", {i32, 1}), b("b", {i32, 1});
  const auto later = std::make_shared<const Combiner>(
      Combiner{"later", {a}, {b}, {Expr(b)}, {int_imm(0, i32)}, false});
  const Axis i("i", 4), k("k", 6);
  Program p = make_program("ordered", {compute("L", {i}, reduce(later, {x(i, k)}, {k}))});
  return {p, wide_target()};
}

/// O[n, k] = X[n, k] over extents that only the call knows.
Schedule row_of_length(const Expr& rows, const Expr& columns) {
  const Buffer x("X", f32, {rows, columns}), out("O", f32, {rows, columns});
  const Var n("n"), k("k");
  const Axis a("n", rows), b("k", columns);
  Stage copy;
  copy.name = "O";
  copy.axes = {{a, AxisKind::spatial, n}, {b, AxisKind::spatial, k}};
  copy.outputs = {out};
  copy.indices = {a, b};
  copy.values = {load(x, {a, b})};
  For inner{.var = k, .min = int_imm(0), .extent = columns, .notes = {}, .body = make_stmt(copy)};
  For outer{.var = n,
            .min = int_imm(0),
            .extent = rows,
            .notes = {},
            .body = make_stmt(std::move(inner))};
  return {Program{"open", {{x}, {out, ParamRole::output}}, make_stmt(std::move(outer))},
          wide_target()};
}

template <class F>
void refused(F&& step, const std::vector<std::string>& telling) {
  try {
    step();
  } catch (const ScheduleError& e) {
    for (const std::string& text : telling) CHECK_THAT(e.what(), Contains(text));
    return;
  }
  FAIL("not refused; expected: " << telling[0]);
}

}  // namespace

TEST_CASE("a refusal says where, what rule, the values, what to try, and shows the loop") {
  Schedule s = matmul(1024, 1026, 1024);
  s.split("i", 16);
  s.split("j", 6);
  s.reorder({"i.o", "j.o", "j.i", "k", "i.i"}).parallel("i.o");
  refused([&] { s.vectorize("j.i"); },
          {"schedule error in matmul, step 5: vectorize(C, \"j.i\")\n",
           "  loop \"j.i\" has extent 6; vectorize needs a multiple of 16 (f32 lanes of "
           "x86-64/avx512)\n",
           "  try: split it by 16 first, or vectorize with {.tail = Tail::mask}\n",
           "\n >       for j.i in 0..6\n", "\n       for j.o in 0..171\n"});
  CHECK(s.trace().size() == 4);
}

TEST_CASE("loops and stages that do not exist") {
  Schedule s = matmul();
  refused([&] { s.split("q", 2); },
          {"stage \"C\" has no loop \"q\"", "its loops are \"i\", \"j\", \"k\""});
  s.split("k", 2);
  refused([&] { s.unroll("k"); },
          {"has no loop \"k\"", "loop \"k\" was split into \"k.o\", \"k.i\" by step 1"});
  refused([&] { s.unroll("k.p"); }, {"did you mean \"k.i\", \"k.o\"?"});
  s.fuse("i", "j");
  refused([&] { s.unroll("j"); }, {"loop \"j\" was fused into \"i_j\" by step 2"});
  refused([&] { s["D"].unroll("i"); }, {"there is no stage \"D\"", "the stages are \"C\""});
  Schedule c = chain();
  c["P"].compute_inline();
  refused([&] { c["P"].unroll("a"); }, {"stage \"P\" was inlined into its readers by step 1"});
  refused([&] { c.split("i", 2); }, {"there are several stages"});
}

TEST_CASE("split, tile and fuse") {
  Schedule s = matmul();
  refused([&] { s.split("i", 0); }, {"the factor is 0"});
  refused([&] { s.split("i", -4); }, {"the factor is -4"});
  refused([&] { s.split("i", 5, {.tail = Tail::exact}); },
          {"extent 12, which 5 does not divide", "choose a divisor"});
  refused([&] { s.split("i", 5, {.tail = Tail::mask}); }, {"tail mask is for vectorize"});
  refused([&] { s.tile("i", "q", 2, 2); }, {"has no loop \"q\""});
  refused([&] { s.fuse("i", "k"); },
          {"loop \"k\" does not stand directly inside \"i\"", "reorder first"});
  refused([&] { s.fuse("j", "k"); }, {"different kinds: one is a reduction loop"});
  refused([&] { s.fuse("i", "i"); }, {"given twice"});
  s.parallel("i");
  refused([&] { s.split("i", 2); }, {"loop \"i\" is marked parallel; marks come after the splits"});
  refused([&] { s.fuse("i", "j"); }, {"loop \"i\" is marked parallel"});
}

TEST_CASE("reorder") {
  Schedule s = matmul();
  refused([&] { s.reorder({"i", "i"}); }, {"loop \"i\" is named twice"});
  Schedule c = chain();
  c["C"].split("i", 8);
  c["P"].compute_at("C", "i.o");
  refused(
      [&] {
        c["C"].reorder({"i.i", "i.o"});
      },
      {"something stands between loops \"i.o\" and \"i.i\""});
  Schedule o = ordered();
  o.split("k", 2);
  refused([&] { o.reorder({"k.i", "k.o"}); }, {"combiner \"later\"", "does not commute"});
  o.reorder({"k.o", "i"});
}

TEST_CASE("reorder across stages that share a buffer is refused when iterations meet") {
  Schedule s = chain();
  s["C"].split("i", 8);
  s["D"].reverse_compute_at("C", "i.o");
  s["P"].compute_at("C", "i.o");
  refused([&] { s["D"].reorder({"l", "i.o"}); }, {"something stands between"});
}

TEST_CASE("parallel, vectorize, unroll and partition") {
  Schedule s = matmul();
  refused([&] { s.parallel("k"); },
          {"reduction loop of stage \"C\"", "parallel needs a spatial loop"});
  refused([&] { s.vectorize("k"); }, {"reduction loop of stage \"C\"", "rfactor"});
  refused([&] { s.vectorize("i", {.tail = Tail::guard}); }, {"tail guard is for split"});
  refused([&] { s.partition("i"); }, {"no guard or select depends on loop \"i\""});
  s.vectorize("j", {.tail = Tail::mask});
  refused([&] { s.vectorize("i", {.tail = Tail::mask}); }, {"loop \"j\" is vectorized already"});
  refused([&] { s.unroll("j"); }, {"already marked vectorize"});
  Schedule big = matmul(1000000, 4, 4);
  refused([&] { big.unroll("i"); }, {"gives 1000000 copies", "the limit is 1024", "split it"});
}

TEST_CASE("iterations that write one element cannot run in parallel") {
  Schedule s = matmul();
  s.split("k", 2);
  s.reorder({"k.o", "i", "j", "k.i"});
  s.cache_write("i");
  refused([&] { s["C.store"].parallel("k.o"); }, {"reduction loop of stage \"C\""});
  Schedule c = chain();
  c["C"].split("i", 8);
  c["P"].compute_at("C", "i.o");
  refused([&] { c["C"].vectorize("i.o", {.tail = Tail::mask}); },
          {"buffer P is allocated inside loop \"i.o\"", "each lane would need its own"});
}

TEST_CASE("compute_at") {
  Schedule s = chain();
  refused([&] { s["D"].compute_at("C", "i"); },
          {"D is an output of the program", "reverse_compute_at"});
  refused([&] { s["P"].compute_at("D", "l"); }, {"stage \"C\" reads P outside loop \"l\""});
  refused([&] { s["C"].compute_at("C", "i"); }, {"already round stage \"C\""});
  s["P"].split("a", 2);
  refused([&] { s["P"].compute_at("C", "i"); }, {"has been scheduled already", "compute_at first"});
  Schedule m = matmul();
  refused([&] { m.compute_at("C", "i"); }, {"C is an output of the program"});
}

TEST_CASE("compute_at below one of two readers") {
  const Tensor x = input("X", f32, {20});
  const Axis a("a", 20), i("i", 16), j("j", 16);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  const Tensor u = compute("U", {i}, p(i));
  const Tensor v = compute("V", {j}, p(j) + p(Expr(j) + int_imm(4)));
  Schedule s(make_program("two", {u, v}), wide_target());
  refused([&] { s["P"].compute_at("V", "j"); },
          {"stage \"U\" reads P outside loop \"j\"", "all readers share"});
}

TEST_CASE("reverse_compute_at") {
  Schedule s = chain();
  refused([&] { s["C"].reverse_compute_at("P", "a"); },
          {"covers 32 of the 34 elements of P along dimension 0"});
  refused([&] { s["D"].reverse_compute_at("P", "a"); },
          {"also reads C, which stage \"C\" writes after the loop"});
  refused([&] { s["C"].reverse_compute_at("D", "l"); }, {"needs C before that loop has ended"});
  const Tensor in = input("X", f32, {9});
  const Axis a("a", 9), b("b", 9);
  const Tensor p = compute("P", {a}, in(a));
  Schedule back(make_program("back", {compute("Q", {b}, p(int_imm(8) - Expr(b)))}), wide_target());
  refused([&] { back["Q"].reverse_compute_at("P", "a"); },
          {"dimension 0 is not one of its axes alone"});
  Matmul m(8, 8, 8);
  const Axis y("y", 8), x("x", 8);
  const Tensor row = compute("R", {y}, sum(m.C(y, x), x));
  Schedule r(make_program("row", {row}), wide_target());
  refused([&] { r["R"].reverse_compute_at("C", "j"); },
          {"the reduction of \"R\" over \"x\" needs all of it"});
  r["R"].reverse_compute_at("C", "i");
}

TEST_CASE("compute_inline") {
  Schedule s = chain();
  refused([&] { s["D"].compute_inline(); },
          {"D is an output of the program; an output is never inlined"});
  Matmul m(8, 8, 8);
  const Axis y("y", 8), x("x", 8);
  Schedule r(make_program("relu", {compute("D", {y, x}, max(m.C(y, x), Expr(0.0)))}),
             wide_target());
  refused([&] { r["C"].compute_inline(); },
          {"stage \"C\" is a reduction; only a map can be inlined"});
}

TEST_CASE("a chain of 60 doubling stages ends in a limit, not in a hang") {
  Tensor t = input("X", i64, {70});
  for (int n = 0; n < 60; ++n) {
    const Axis i("i", 69 - n);
    t = compute("F" + std::to_string(n), {i}, t(i) + t(Expr(i) + int_imm(1)));
  }
  Schedule s(make_program("doubling", {t}), wide_target());
  std::string message;
  for (int n = 0; n < 59 && message.empty(); ++n) {
    const Primitive step = ComputeInline{"F" + std::to_string(n)};
    if (const auto refusal = s.try_apply(step)) message = refusal->rule;
  }
  CHECK_THAT(message, Contains("the limit is 4000"));
}

TEST_CASE("cache_read") {
  Schedule s = matmul();
  refused([&] { s.cache_read("Q", "i"); }, {"there is no buffer \"Q\"", "the buffers are"});
  refused([&] { s.cache_read("C", "i"); },
          {"stage \"C\" writes C under the same loop", "cache_write"});
  refused(
      [&] {
        s.cache_read("B", "j", {.layout = {{1, 16, 0}, {0, 1, 0}}});
      },
      {"does not store dimension 1 of B exactly once"});
  refused([&] { s.cache_read("B", "j", {.scope = Scope::shared}); }, {"has no shared memory"});
  Schedule c = chain();
  refused([&] { c["D"].cache_read("X", "l"); }, {"stage \"D\" does not read X"});
}

TEST_CASE("cache_write") {
  Schedule s = matmul(12, 20, 0);
  s.reorder({"k", "i", "j"});
  refused([&] { s.cache_write("i"); }, {"the reduction loop \"k\" outside may be empty"});
  Schedule c = chain();
  c["D"].reverse_compute_at("C", "i");
  refused([&] { c["C"].cache_write("i"); }, {"stage \"D\" also touches C under loop \"i\""});
  Schedule f = matmul();
  f.fuse("i", "j");
  f.split("i_j", 7);
  refused([&] { f.cache_write("i_j.o"); },
          {"cannot be proved that stage \"C\" writes exactly a box of C"});
}

TEST_CASE("set_scope and decompose_reduction") {
  Schedule s = matmul();
  refused([&] { s.set_scope("B", Scope::reg); }, {"B is a parameter"});
  s.split("k", 2);
  refused([&] { s.decompose_reduction("k.i"); },
          {"inside the reduction loop \"k.o\"", "decompose at \"k.o\""});
  s.decompose_reduction("j");
  refused([&] { s["C"].decompose_reduction("k.o"); }, {"has no init of its own"});
  refused([&] { s["C.init"].decompose_reduction("j"); }, {"is not a reduction"});
}

TEST_CASE("rfactor") {
  Schedule s = matmul();
  refused([&] { s.rfactor("i"); },
          {"loop \"i\" is no reduction loop of stage \"C\"", "split the reduction first"});
  refused([&] { s.rfactor("k", {.dim = 3}); },
          {"dim is 3; the new dimension stands at one of 0 to 2, or last (-1)"});
  s.parallel("i");
  refused([&] { s.rfactor("k"); },
          {"loop \"i\" is marked; marks come after rfactor", "rfactor first"});
  Schedule c = chain();
  refused([&] { c["C"].rfactor("i"); }, {"stage \"C\" is not a reduction"});
  Schedule o = ordered();
  o.split("k", 2);
  refused([&] { o.rfactor("k.i"); },
          {"combiner \"later\" of stage \"L\" does not commute", "cannot be combined apart"});
  Matmul m(8, 8, 8);
  const Axis y("y", 8), x("x", 8);
  Schedule r(make_program("relu", {compute("D", {y, x}, max(m.C(y, x), Expr(0.0)))}),
             wide_target());
  r["C"].split("k", 4);
  r["C"].reorder({"k.o", "i", "j"});
  r["D"].reverse_compute_at("C", "i");
  refused([&] { r["C"].rfactor("k.i"); },
          {"stage \"D\" touches C inside the reduction of \"C\"", "rfactor before"});
  Schedule twice = matmul();
  twice.split("k", 2);
  twice.rfactor("k.i");
  refused([&] { twice["C"].unroll("k.o"); }, {"loop \"k.o\" went to \"C.rf\" by step 2"});
}

TEST_CASE("pack") {
  const std::vector<LayoutDim> transposed = {{1, 1, 0}, {0, 1, 0}};
  Schedule s = matmul();
  refused([&] { s.pack("B", {}); }, {"no layout is given for B", "blocks of 16 columns"});
  refused([&] { s.pack("C", transposed); }, {"C is an output of the program", "cache_write"});
  refused([&] { s.pack("B", {{0, 1, 0}}); }, {"does not store dimension 1 of B exactly once"});
  refused([&] { s.pack("B", {{2, 1, 0}}); }, {"names dimension 2 of B, which has 2"});
  refused(
      [&] {
        s.pack("B", {{0, 1, 0}, {1, 1, int64_t{1} << 40}, {1, int64_t{1} << 40, 0}});
      },
      {"does not store dimension 1 of B exactly once"});
  refused(
      [&] {
        s.pack("B", {{0, 1, 0}, {1, 1 << 21, 0}, {1, 1, 1 << 21}});
      },
      {"stores the 120 elements of B in 12582912", "the limit is 16 times"});
  refused([&] { s.pack("B", transposed, {.when = PackWhen::ahead}); },
          {"B is an input; only the contents of a constant are known ahead",
           "PackWhen::run_time, or mark the input constant"});
  refused(
      [&] {
        chain().pack("P", {{0, 1, 0}}, {.when = PackWhen::ahead});
      },
      {"P is computed by the program"});
  s.cache_read("B", "j");
  s.storage_align("B.cache", 0, 16, 1);
  refused([&] { s.pack("B.cache", transposed); },
          {"the rows of B.cache are aligned already", "pack first"});
  s.set_scope("B.cache", Scope::reg);
  refused([&] { s.pack("B.cache", transposed); }, {"B.cache is in registers"});
  const Tensor w = constant("W", f32, {6, 7});
  const Axis i("i", 6), k("k", 7);
  Schedule known(make_program("rows", {compute("R", {i}, sum(w(i, k), k))}), wide_target());
  known.pack("W", transposed, {.when = PackWhen::ahead});
  refused([&] { known.pack("W", transposed); }, {"W is packed ahead already, as layout(d1, d0)"});
  Schedule copied(make_program("rows", {compute("R", {i}, sum(w(i, k), k))}), wide_target());
  copied.pack("W", transposed);
  copied.pack("W", transposed);  // the copy's copy
  CHECK(copied.has_stage("W.packed.2"));
  Schedule open = row_of_length(Var("N"), Var("K"));
  refused([&] { open.pack("X", transposed); }, {"X has an extent that is known at the call only"});
}

TEST_CASE("pack of an input that no stage reads") {
  const Buffer x("X", f32, {int_imm(8)}), out("O", f32, {int_imm(8)});
  const Var loop("i");
  const Axis a("a", 8);
  Stage fill;
  fill.name = "F";
  fill.axes = {{a, AxisKind::spatial, loop}};
  fill.outputs = {out};
  fill.indices = {a};
  fill.values = {float_imm(1)};
  For over{.var = loop,
           .min = int_imm(0),
           .extent = int_imm(8),
           .notes = {},
           .body = make_stmt(std::move(fill))};
  Schedule s({"p", {{x}, {out, ParamRole::output}}, make_stmt(std::move(over))}, wide_target());
  refused([&] { s.pack("X", {{0, 1, 0}}); }, {"no stage reads X"});
}

TEST_CASE("storage_align") {
  Schedule s = matmul();
  refused([&] { s.storage_align("B", 0, 16, 0); },
          {"B is a parameter; the caller decides how its rows lie", "cache_read"});
  s.cache_read("B", "j");
  refused([&] { s.storage_align("B.cache", 1, 16, 0); },
          {"dimension 1 of B.cache has no rows to pad", "2 dimensions", "the last is 1"});
  refused([&] { s.storage_align("B.cache", -1, 16, 0); }, {"dimension -1 of B.cache"});
  refused([&] { s.storage_align("B.cache", 0, 16, 16); },
          {"no stride leaves the rest 16 when divided by 16"});
  refused([&] { s.storage_align("B.cache", 0, 0, 0); }, {"the factor is from 1 to"});
  s.set_scope("B.cache", Scope::reg);
  refused([&] { s.storage_align("B.cache", 0, 16, 0); }, {"in registers, which have no rows"});
}

TEST_CASE("prefetch") {
  Schedule s = matmul(12, 20, 600);
  refused([&] { s.prefetch("B", "k", 0); }, {"the distance is 0; it is from 1 to"});
  refused([&] { s.prefetch("C", "k", 1); }, {"no stage under loop \"k\" reads C"});
  refused([&] { s.prefetch("B", "i", 1); },
          {"the iterations of loop \"i\" all touch the same box of B", "nothing to fetch ahead"});
  refused([&] { s.prefetch("B", "j", 1); },
          {"one iteration of \"j\" touches 600 cache lines", "the limit is 256"});
  s.cache_read("A", "i");
  refused([&] { s.prefetch("A.cache", "i", 1); },
          {"A.cache is allocated inside loop \"i\"", "prefetch what fills it"});
  s.set_scope("A.cache", Scope::reg);
  refused([&] { s.prefetch("A.cache", "k", 1); }, {"A.cache is in registers"});
  s.reorder({"k", "j"}).vectorize("j", {.tail = Tail::mask});
  refused([&] { s.prefetch("B", "j", 1); }, {"loop \"j\" is vectorized", "a loop outside it"});
  const Tensor scale = input("S", f32, {});
  const Axis i("i", 9);
  Schedule one(make_program("one", {compute("C", {i}, input("X", f32, {9})(i) * scale())}),
               wide_target());
  refused([&] { one.prefetch("S", "i", 1); }, {"S is one element"});
}

TEST_CASE("prefetch of a box of unknown size") {
  Schedule s = row_of_length(Var("N"), Var("K"));
  refused([&] { s.prefetch("X", "n", 1); },
          {"how much of dimension 1 of X an iteration of \"n\" touches is not known"});
}

TEST_CASE("double_buffer") {
  Schedule s = matmul();
  s.split("k", 2);
  s.reorder({"k.o", "i", "k.i", "j"});
  refused([&] { s.double_buffer("B", "k.o"); },
          {"B cannot have two copies in loop \"k.o\"", "not allocated in the body",
           "cache_read or compute_at at that loop"});
  s.cache_read("B", "k.o");
  s.cache_write("i");
  refused(
      [&] { s.double_buffer("C.cache", "i"); },
      {"stage \"C.load\" fills C.cache from C, which stage \"C.store\" writes in the same loop"});
  Schedule reg = s;
  s.double_buffer("B.cache", "k.o");
  refused([&] { s["B.cache"].set_scope("B.cache", Scope::reg); }, {"B.cache is in registers"});
  refused([&] { s["C"].split("k.o", 2); }, {"marked double_buffer(B.cache)=1"});
  refused([&] { s["C"].unroll("k.o"); }, {"loop \"k.o\" is unroll", "hand the copies on in order"});
  reg.set_scope("B.cache", Scope::reg);
  refused([&] { reg["C"].double_buffer("B.cache", "k.o"); },
          {"B.cache is in registers", "need no second copy"});
}

TEST_CASE("double_buffer of what depends on the body, before and after a step") {
  Schedule s = chain();
  s["C"].split("i", 8);
  s["P"].compute_at("C", "i.o");
  Schedule marked = s;
  s["P"].cache_read("X", "i.o");
  refused([&] { s["C"].double_buffer("P", "i.o"); },
          {"P cannot have two copies in loop \"i.o\"",
           "stage \"P\" fills P from X.cache, which stage \"X.cache\" writes in the same loop"});
  marked["C"].double_buffer("P", "i.o");
  refused([&] { marked["P"].cache_read("X", "i.o"); },
          {"cache_read(P, \"X\", \"i.o\")", "stage \"P\" fills P from X.cache"});
}

TEST_CASE("double_buffer of a tree that fills late, not at all, or two buffers at once") {
  const Buffer x("X", f32, {int_imm(8)}), t("T", f32, {int_imm(8)}), u("U", f32, {int_imm(8)}),
      out("O", f32, {int_imm(8)});
  const Var loop("i");
  const auto copy = [&](const std::string& name, std::vector<Buffer> to, const Buffer& from) {
    const Axis a("a", 8);
    Stage s;
    s.name = name;
    s.axes = {{a, AxisKind::spatial, loop}};
    s.values.assign(to.size(), load(from, {a}));
    s.outputs = std::move(to);
    s.indices = {a};
    return make_stmt(std::move(s));
  };
  const auto schedule = [&](std::vector<Stmt> parts) {
    const Stmt body = make_stmt(Allocate{u, make_stmt(Allocate{t, seq(std::move(parts))})});
    For over{.var = loop, .min = int_imm(0), .extent = int_imm(8), .notes = {}, .body = body};
    return Schedule({"p", {{x}, {out, ParamRole::output}}, make_stmt(std::move(over))},
                    wide_target());
  };
  Schedule late = schedule({copy("A", {t}, x), copy("B", {out}, t), copy("D", {t}, x)});
  refused([&] { late["A"].double_buffer("T", "i"); },
          {"stage \"D\" writes T after it has been read in the same iteration"});
  Schedule never = schedule({copy("A", {u}, x), copy("B", {out}, u)});
  refused([&] { never["A"].double_buffer("T", "i"); }, {"nothing in loop \"i\" fills T"});
  Schedule both = schedule({copy("A", {t, u}, x), copy("B", {out}, t)});
  refused([&] { both["A"].double_buffer("T", "i"); },
          {"stage \"A\" also writes U in the nest that fills T"});
}

TEST_CASE("annotate") {
  Schedule s = matmul();
  refused([&] { s.annotate("i", "partition", 1); },
          {"\"partition\" is no key that lowering knows (\"no_partition\")", "user.NAME"});
  refused([&] { s.annotate("i", "user.", 1); }, {"\"user.\" is no key"});
  refused([&] { s.annotate("i", "user.a b", 1); }, {"up to 59 letters"});
  refused([&] { s.annotate("i", "no_partition", 2); }, {"the value of \"no_partition\" is 2"});
  s.annotate("i", "user.x", 1);
  refused([&] { s.split("i", 2); }, {"loop \"i\" is marked user.x=1; marks come after the splits"});
}

TEST_CASE("knobs") {
  Knobs bound(Point::from_json(R"({"a":3})"));
  CHECK_THROWS_WITH(bound.pick("a", {1, 2}), Contains("3 is none of 1, 2"));
  CHECK_THROWS_WITH(bound.flag("b"), Contains("the point has no value for it"));
  Knobs survey_knobs;
  survey_knobs.flag("x");
  CHECK_THROWS_WITH(survey_knobs.flag("x"), Contains("declared twice"));
  CHECK_THROWS_WITH(Point::from_json("[1]"), Contains("an object of names and values"));
  CHECK_THROWS_WITH(Point::from_json(R"({"tile":4})").number("til"),
                    Contains("did you mean \"tile\""));
  const Template fickle = [](Schedule&, Knobs& k) {
    if (k.pick("a", {0, 1, 2, 3, 4, 5, 6, 7}) > 0) k.flag("b");
  };
  CHECK_THROWS_WITH(survey(fickle, Matmul(4, 4, 4).program(), wide_target()),
                    Contains("before the first branch"));
}

TEST_CASE("traces that are not traces") {
  CHECK_THROWS_WITH(trace_from_json("{"), Contains("not JSON"));
  CHECK_THROWS_WITH(trace_from_json("{}"), Contains("a list of steps is needed"));
  CHECK_THROWS_WITH(trace_from_json(R"([{"step":"spilt"}])"),
                    Contains("trace, step 1: there is no step \"spilt\"; did you mean split"));
  CHECK_THROWS_WITH(trace_from_json(R"([{"step":"fuse","stage":"C","outer":"i"}])"),
                    Contains("fuse lacks the field \"inner\""));
  CHECK_THROWS_WITH(trace_from_json(R"([{"step":"unroll","stage":"C","loop":7}])"),
                    Contains("field \"loop\" of unroll needs a string, not 7"));
  CHECK_THROWS_WITH(trace_from_json(R"([{"step":"unroll","stage":"C","loop":"i","by":2}])"),
                    Contains("unroll has no field \"by\""));
}

TEST_CASE("the message about a step of a long program shows only the part around the loop") {
  Tensor t = input("x", i64, {70});
  for (int n = 0; n < 40; ++n) {
    const Axis a("a", 69 - n);
    t = compute(fmt::format("f{}", n), {a}, t(a) + t(a + 1));
  }
  Schedule s(make_program("long", {t}), Target::host());
  try {
    s["f20"].split("a", 0);
    FAIL("accepted");
  } catch (const ScheduleError& e) {
    const std::string text = e.what();
    CHECK(text.find("lines before") != std::string::npos);
    CHECK(text.find("lines more") != std::string::npos);
    CHECK(text.find("f20[a] = f19[a] + f19[a+1]") != std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') < 90);
  }
}
