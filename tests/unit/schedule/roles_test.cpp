#include <catch2/catch.hpp>

#include <tenon/schedule/roles.h>

#include "schedule_formulas.h"

using namespace tenon;

namespace {

/// P = |A|, C = P * B, D = C + bias, E = max(D, 0), and a map U of A alone.
Program group() {
  const Tensor a = input("A", f32, {8, 16}), b = input("B", f32, {16, 32}),
               v = input("v", f32, {32});
  const Axis p0("p", 8), p1("q", 16), i("i", 8), j("j", 32), k("k", 16);
  const Tensor p = compute("P", {p0, p1}, abs(a(p0, p1)));
  const Tensor c = compute("C", {i, j}, sum(p(i, k) * b(k, j), k));
  const Axis y("y", 8), x("x", 32), s("s", 8), t("t", 32), u("u", 8), w("w", 16);
  const Tensor d = compute("D", {y, x}, c(y, x) + v(x));
  const Tensor e = compute("E", {s, t}, max(d(s, t), Expr(0.0)));
  return make_program("group", {e, compute("U", {u, w}, a(u, w) * Expr(2.0))});
}

void generic_at(const Program& p, Knobs knobs) {
  Schedule s(p, wide_target());
  generic_template(s, knobs);
  verify_tree(s);
}

}  // namespace

TEST_CASE("roles of a fused group") {
  const Roles r = roles(group());
  CHECK(r.anchor == "C");
  CHECK(r.prologue == std::vector<std::string>{"P"});
  CHECK(r.epilogue == std::vector<std::string>{"D", "E"});
  CHECK(r.others == std::vector<std::string>{"U"});
  CHECK(stage_points(group(), "C") == 8 * 32 * 16);
}

TEST_CASE("prologue and epilogue go where the anchor's loops are") {
  Schedule s(group(), wide_target());
  CHECK(inline_prologue(s) == 1);
  auto [jo, ji] = s["C"].split("j", 16);
  s["C"].reorder({"i", jo, "k", ji});
  CHECK(fuse_epilogue(s, jo) == std::vector<std::string>{"E"});
  s.set_scope("C", Scope::reg);
  verify_tree(s);
  CHECK(s.print() == R"(program group
input A[8,16] f32
input B[16,32] f32
input v[32] f32
output E[8,32] f32
output U[8,16] f32
for i in 0..8
  for j.o in 0..2
    allocate C[8,32] f32 register
    stage C[8,32] f32 register
      for k in 0..16  reduce
        for j.i in 0..16
          init C[i, j.o*16+j.i] = 0.0
          C[i, j.o*16+j.i] += abs(A[i, k]) * B[k, j.o*16+j.i]
    stage E[8,32] f32
      for s in 0..1
        for t in 0..16
          E[i+s, j.o*16+t] = max(C[i+s, j.o*16+t] + v[j.o*16+t], 0.0)
stage U[8,16] f32
  for u in 0..8
    for w in 0..16
      U[u, w] = A[u, w] * 2.0
)");
}

TEST_CASE("the generic template takes every shape of formula") {
  const Axis i("i", 40), j("j", 50), k("k", 60), z("z", 0);
  const Tensor a = input("A", f32, {40, 60}), b = input("B", f32, {60, 50}),
               e = input("Z", f32, {40, 0});
  const Tensor scalar = input("S", f32, {});
  const Axis i2("i", 40), k2("k", 60), i3("i", 40), k3("k", 60), k4("k", 60), z2("z", 0);
  const std::vector<Program> programs = {
      make_program("matmul", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))}),
      make_program("rows", {compute("R", {i2}, sum(a(i2, k2), k2))}),
      make_program("all", {compute("T", {}, sum(a(i3, k3), {i3, k3}))}),
      make_program("map", {compute("M", {i, k4}, exp(a(i, k4)))}),
      make_program("empty", {compute("E", {i, z}, e(i, z) + Expr(1.0))}),
      make_program("empty_sum", {compute("F", {i}, sum(e(i, z2), z2))}),
      make_program("scalar", {compute("G", {}, scalar.at({}) * Expr(2.0))})};
  for (const Program& p : programs) {
    INFO(p.name);
    const KnobSpace space = survey(generic_template, p, wide_target());
    generic_at(p, Knobs(space.default_point()));
    Rng rng(1);
    for (int n = 0; n < 5; ++n) generic_at(p, Knobs(space.random_point(rng)));
  }
}

TEST_CASE("the generic matmul keeps its tile in registers and runs in parallel") {
  Target target = wide_target();
  target.cores = 2;
  Schedule s(Matmul(128, 128, 128).program(), target);
  Knobs knobs;
  generic_template(s, knobs);
  const std::string text = s.print();
  CHECK_THAT(text, Catch::Matchers::Contains("C.cache[128,128] f32 register"));
  CHECK_THAT(text, Catch::Matchers::Contains("parallel"));
  CHECK_THAT(text, Catch::Matchers::Contains("vectorize"));
}
