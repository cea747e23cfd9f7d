#include <tenon/ir/ops.h>

#include "refused.h"

using namespace tenon;

TEST_CASE("split with tail shift_inward") {
  Schedule s = matmul();
  refused([&] { s.split("i", 13, {.tail = Tail::shift_inward}); },
          {"loop \"i\" has extent 12; a tile of 13 does not fit inside", "a smaller factor"});
  refused([&] { s.split("k", 4, {.tail = Tail::shift_inward}); },
          {"loop \"k\" runs the reduction of stage \"C\"", "would count twice"});
  s.reorder({"k", "i", "j"});
  refused([&] { s.split("i", 5, {.tail = Tail::shift_inward}); },
          {"stage \"C\" adds to what was there before loop \"i\"", "would count twice"});
  Schedule w = chain();
  w["C"].split("i", 5, {.tail = Tail::shift_inward});
  refused([&] { w["C"].parallel("i.o"); },
          {"may write the same element of C in two iterations of \"i.o\""});
  Schedule d = matmul();
  d.split("i", 5, {.tail = Tail::shift_inward});
  refused([&] { d.decompose_reduction("i.o"); },
          {"may write the same element of C in two iterations of \"i.o\"", "updated twice",
           "decompose at a loop inside it"});
  d.decompose_reduction("i.i");
}

TEST_CASE("a shifted tile reads nothing that changes") {
  Schedule s = matmul();
  s.decompose_reduction("k");
  s["C"].cache_write("k");
  refused([&] { s["C"].split("j", 6, {.tail = Tail::shift_inward}); },
          {"stage \"C.load\" reads C, which stage \"C.store\" writes after it", "read it changed"});
}

TEST_CASE("split with tail pad") {
  Schedule s = matmul();
  refused([&] { s.split("i", 5, {.tail = Tail::pad}); },
          {"stage \"C\" writes C, a parameter, which cannot be rounded up", "cache_write"});
  refused([&] { s.split("k", 4, {.tail = Tail::pad}); },
          {"loop \"k\" of extent 6 is not one whole dimension of what stage \"C\" writes"});
  Schedule c = chain();
  refused([&] { c["P"].split("a", 16, {.tail = Tail::pad}); },
          {"stage \"P\" reads outside: X[a] along dimension 0"});
  refused([&] { c["C"].split("i", 5, {.tail = Tail::pad}); }, {"reads outside: P[i"});
  c["P"].compute_at("C", "i");
  refused([&] { c["P"].split("a", 2, {.tail = Tail::pad}); }, {"is not one whole dimension"});
  Matmul m(8, 8, 8);
  const Axis y("y", 8), x("x", 8);
  Schedule r(make_program("relu", {compute("D", {y, x}, max(m.C(y, x), Expr(0.0)))}),
             wide_target());
  r["C"].decompose_reduction("i");
  refused([&] { r["C"].split("i", 3, {.tail = Tail::pad}); },
          {"stage \"C.init\" writes C outside", "pad before decompose_reduction"});
}

TEST_CASE("what padded iterations read and divide by") {
  const Tensor x = input("X", i32, {40}), z = input("Z", i32, {40});
  const Axis a("a", 40), b("b", 37), l("l", 37);
  const Tensor p = compute("P", {a}, x(a) + z(a));
  const Tensor q = compute("Q", {b}, p(b));
  const Tensor w = compute("W", {l}, q(l));
  Schedule s(make_program("parts", {w}), wide_target());
  s["P"].split("a", 10);
  s["P"].reorder({"a.i", "a.o"});
  s["P"].fuse("a.i", "a.o");
  refused([&] { s["Q"].split("b", 8, {.tail = Tail::pad}); },
          {"read P, and it cannot be proved that all of it is written before",
           "pad its producer first"});
  const Axis c("c", 37), e("e", 37);
  const Tensor t = compute("T", {c}, floor_div(x(c), z(c)));
  Schedule d(make_program("quotients", {compute("U", {e}, t(e))}), wide_target());
  refused([&] { d["T"].split("c", 8, {.tail = Tail::pad}); },
          {"stage \"T\" divides by Z[c], which may be 0 there"});
}

TEST_CASE("reverse_compute_inline") {
  Matmul m(8, 8, 8);
  const Axis y("y", 8), x("x", 8);
  Schedule r(make_program("relu", {compute("D", {y, x}, max(m.C(y, x), Expr(0.0)))}),
             wide_target());
  refused([&] { r["D"].reverse_compute_inline(); },
          {"stage \"C\" is a reduction", "cache_write \"C\" first", "reverse_compute_at"});
  refused([&] { r["C"].reverse_compute_inline(); },
          {"stage \"C\" is a reduction; only a map can be folded"});
  Schedule c = chain();
  refused([&] { c["P"].reverse_compute_inline(); },
          {"stage \"P\" reads nothing that a stage before it writes"});
  refused([&] { c["C"].reverse_compute_inline(); },
          {"stage \"C\" reads P at [i]: dimension 0 is not one of its axes alone"});
  c["D"].reverse_compute_inline();
  refused([&] { c["D"].unroll("l"); }, {"stage \"D\" was inlined into what it reads by step 1"});
}

TEST_CASE("reverse_compute_inline where others need the producer, or it is wider or narrower") {
  const Tensor x = input("X", f32, {6}), v = input("V", f32, {6, 4});
  const Axis a("a", 6), i("i", 6), j("j", 4), k("k", 6);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  const Tensor wide = compute("W", {i, j}, p(i) + v(i, j));
  Schedule s(make_program("wide", {wide}), wide_target());
  refused([&] { s["W"].reverse_compute_inline(); },
          {"stage \"W\" has 2 axes and reads along 1 of the 1 of \"P\"", "compute_inline"});
  const Tensor parts = compute("Q", {i, j}, v(i, j) * Expr(2.0));
  const auto part = [&](int64_t div, int64_t mod, int64_t extent) {
    const Axis l("l", extent);
    return compute("Z", {l}, parts(floor_div(l, int_imm(div)), floor_mod(l, int_imm(mod))));
  };
  for (const Tensor& other : {part(4, 4, 20), part(3, 3, 18), part(4, 2, 24)}) {
    Schedule z(make_program("parts", {other}), wide_target());
    refused([&] { z["Z"].reverse_compute_inline(); },
            {"stage \"Z\" reads Q at", "nor the quotient or the remainder of one"});
  }
  const Tensor u = compute("U", {k}, p(k) + Expr(1.0));
  Schedule two(make_program("two", {wide, u}), wide_target());
  refused([&] { two["U"].reverse_compute_inline(); }, {"stage \"W\" also reads P"});
  Schedule out(make_program("out", {p, u}), wide_target());
  refused([&] { out["U"].reverse_compute_inline(); },
          {"P is an output of the program; it would not be written"});
}

TEST_CASE("reverse_compute_inline of a copy whose elements another stage has started") {
  Schedule s = matmul();
  s.decompose_reduction("i");
  s["C"].cache_write("j");
  refused([&] { s["C.store"].reverse_compute_inline(); },
          {"stage \"C.init\" touches C before \"C.store\" writes its elements"});
}

TEST_CASE("reverse_compute_inline with inputs that are not ready") {
  const Tensor x = input("X", f32, {8});
  const Axis a("a", 8), b("b", 8), i("i", 8);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  const Tensor q = compute("Q", {b}, x(b) + Expr(1.0));
  const Tensor w = compute("W", {i}, p(i) * q(i));
  Schedule s(make_program("both", {w}), wide_target());
  s["W"].split("i", 4);
  s["P"].compute_at("W", "i.o");
  s["Q"].compute_at("W", "i.o");
  refused([&] { s["W"].reverse_compute_inline(); },
          {"stage \"W\" also reads", "in the nest of", "reverse_compute_at instead"});
  Schedule c(make_program("copies", {w}), wide_target());
  c["W"].cache_read("Q", "i");
  refused([&] { c["Q.cache"].reverse_compute_inline(); },
          {"stage \"Q.cache\" writes Q.cache, which does not exist where \"Q\" stands"});
}

TEST_CASE("pad_einsum") {
  Schedule s = matmul();
  refused([&] { s.pad_einsum({4, 4}); }, {"2 paddings are given for the 3 axes of \"C\""});
  refused([&] { s.pad_einsum({4, 4, 0}); }, {"the padding of axis \"k\" is 0"});
  Schedule c = chain();
  refused([&] { c["C"].pad_einsum({4}); },
          {"stage \"C\" is not a sum with its own init over all of its own axes"});
  s.split("i", 4);
  refused([&] { s.pad_einsum({5, 1, 1}); }, {"has been scheduled already"});

  const Tensor x = input("X", f32, {9, 5}), w = input("W", f32, {9}), v = input("V", f32, {7});
  const Axis i("i", 9), k("k", 5), y("y", 5), a("a", 3);
  Schedule r(make_program("scaled", {compute("R", {i}, sum(x(i, k) * w(i), k))}), wide_target());
  refused(
      [&] {
        r.pad_einsum({1, 4});
      },
      {"with axis \"k\" padded", "adds terms that are not known to be 0", "0 * inf is NaN"});
  r.pad_einsum({4, 1});
  Schedule t(make_program("taps", {compute("T", {y}, sum(v(y + a) * v(a), a))}), wide_target());
  refused([&] { t.pad_einsum({1, 2}); }, {"adds terms that are not known to be 0"});
  refused(
      [&] {
        t.pad_einsum({4, 1});
      },
      {"stage \"T\" reads V at [y + a]; axis \"y\", which is padded, has to be the whole index"});
}
