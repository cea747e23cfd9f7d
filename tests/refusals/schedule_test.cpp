#include <catch2/catch.hpp>

#include <tenon/ir/ops.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>

#include "refused.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

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
  const Tensor x = input("X", f32, {4, 16});
  const Axis i("i", 4), k("k", 16);
  Schedule best(make_program("best", compute_tuple("M", {i}, arg_max(x(i, k), k))), wide_target());
  refused([&] { best.vectorize("k"); },
          {"reduction loop of stage \"M\"", "rfactor(M, \"k\") first"});
  refused([&] { s.vectorize("i", {.tail = Tail::guard}); }, {"tail guard is for split"});
  refused([&] { s.partition("i"); }, {"no guard or select depends on loop \"i\""});
  s.vectorize("j", {.tail = Tail::mask});
  refused([&] { s.vectorize("i", {.tail = Tail::mask}); }, {"loop \"j\" is vectorized already"});
  refused([&] { s.unroll("j"); }, {"already marked vectorize"});
  Schedule big = matmul(1000000, 4, 4);
  refused([&] { big.unroll("i"); }, {"give 1000000 copies", "the limit is 1024", "split it"});
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
