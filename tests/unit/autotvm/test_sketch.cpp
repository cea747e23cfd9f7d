#include <tenon/ir/ops.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "autotvm/sketch/copies.h"
#include "tests/unit/autotvm/sketched.h"

using namespace tenon;

// Formulas that stand in no table of operators, at sizes that no tile divides.
namespace {

Named product() {
  const Axis i("i", 37), j("j", 53), k("k", 71);
  const Tensor a = input("A", f32, {37, 71}), b = input("B", f32, {71, 53});
  return {"product", compute("C", {i, j}, sum(a(i, k) * b(k, j), k))};
}

/// Both factors the other way round, and a map before and after.
Named turned_product() {
  const Axis i("i", 29), j("j", 45), k("k", 64), p("p", 64), q("q", 29), m("m", 29), n("n", 45);
  const Tensor a = input("A", f32, {64, 29}), b = input("B", f32, {45, 64}),
               bias = input("bias", f32, {45});
  const Tensor half = compute("H", {p, q}, a(p, q) * Expr(0.5));
  const Tensor c = compute("C", {i, j}, sum(half(k, i) * b(j, k), k));
  return {"turned_product", compute("D", {m, n}, max(c(m, n) + bias(n), Expr(0.0)))};
}

Named batch_product() {
  const Axis h("h", 3), i("i", 17), j("j", 33), k("k", 19);
  const Tensor a = input("A", f32, {3, 17, 19}), b = input("B", f32, {3, 19, 33});
  return {"batch_product", compute("C", {h, i, j}, sum(a(h, i, k) * b(h, k, j), k))};
}

/// Three factors and two sums: what no matrix product is.
Named bilinear() {
  const Axis i("i", 23), o("o", 19), p("p", 11), q("q", 13);
  const Tensor x = input("X", f32, {23, 11}), w = input("W", f32, {19, 11, 13}),
               y = input("Y", f32, {23, 13});
  return {"bilinear", compute("Z", {i, o}, sum(x(i, p) * w(o, p, q) * y(i, q), {p, q}))};
}

/// A padded convolution with steps, ReLU after it.
Named convolution() {
  const Axis c("c", 5), y("y", 17), z("z", 19), o("o", 21), p("p", 8), q("q", 9), r("r", 5),
      u("u", 3), v("v", 3), o2("o2", 21), p2("p2", 8), q2("q2", 9);
  const Tensor x = input("X", f32, {5, 15, 17}), w = input("W", f32, {21, 5, 3, 3});
  const Expr inside = Expr(y) >= 1 && Expr(y) < 16 && Expr(z) >= 1 && Expr(z) < 18;
  const Tensor pad =
      compute("P", {c, y, z}, select(inside, x(c, Expr(y) - 1, Expr(z) - 1), float_imm(0)));
  const Tensor conv =
      compute("C", {o, p, q},
              sum(pad(r, Expr(p) * 2 + Expr(u), Expr(q) * 2 + Expr(v)) * w(o, r, u, v), {r, u, v}));
  return {"convolution", compute("R", {o2, p2, q2}, max(conv(o2, p2, q2), Expr(0.0)))};
}

/// Channels in blocks, the weights in plain order: W's rows are cut by two axes.
Named blocked_convolution() {
  const Axis b("b", 3), p("p", 9), q("q", 11), o("o", 16), r("r", 7), u("u", 3), v("v", 3);
  const Tensor x = input("X", f32, {7, 11, 13}), w = input("W", f32, {48, 7, 3, 3});
  return {"blocked_convolution", compute("Y", {b, p, q, o},
                                         sum(x(r, Expr(p) + Expr(u), Expr(q) + Expr(v)) *
                                                 w(Expr(b) * 16 + Expr(o), r, u, v),
                                             {r, u, v}))};
}

/// Bytes with wide sums: machines add up four of them at once.
Named bytes_product() {
  const Axis i("i", 21), j("j", 37), k("k", 48);
  const Tensor a = input("A", u8, {21, 48}), b = input("B", i8, {48, 37});
  return {"bytes_product", compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k))};
}

Named depthwise() {
  const Axis c("c", 7), p("p", 13), q("q", 21), u("u", 3), v("v", 3);
  const Tensor x = input("X", f32, {7, 15, 23}), w = input("W", f32, {7, 3, 3});
  return {"depthwise",
          compute("Y", {c, p, q},
                  sum(x(c, Expr(p) + Expr(u), Expr(q) + Expr(v)) * w(c, u, v), {u, v}))};
}

/// Softmax as a user writes it: no lanes in the formula.
Named softmax() {
  const Axis i("i", 9), k("k", 301), i1("i1", 9), j("j", 301), i2("i2", 9), l("l", 301),
      i3("i3", 9), m("m", 301);
  const Tensor x = input("X", f32, {9, 301});
  const Tensor top = compute("top", {i}, reduce_max(x(i, k), {k}));
  const Tensor e = compute("e", {i1, j}, exp(x(i1, j) - top(i1)));
  const Tensor total = compute("total", {i2}, sum(e(i2, l), l));
  return {"softmax", compute("Y", {i3, m}, e(i3, m) / total(i3))};
}

Named column_sums() {
  const Axis j("j", 83), i("i", 51);
  const Tensor x = input("X", f32, {51, 83});
  return {"column_sums", compute("S", {j}, sum(x(i, j), i))};
}

Named whole_sum() {
  const Axis one("one", 1), i("i", 300), j("j", 301);
  const Tensor x = input("X", f32, {300, 301});
  return {"whole_sum", compute("S", {one}, sum(x(i, j), {i, j}))};
}

Named turned_sum_of_maps() {
  const Axis i("i", 35), j("j", 47), p("p", 47), q("q", 35);
  const Tensor x = input("X", f32, {35, 47}), y = input("Y", f32, {47, 35});
  const Tensor z = compute("Z", {i, j}, x(i, j) * Expr(2.0));
  return {"turned_sum_of_maps", compute("T", {p, q}, z(q, p) + y(p, q))};
}

std::vector<Named> formulas() {
  return {product(),     turned_product(),      batch_product(), bilinear(),
          convolution(), blocked_convolution(), bytes_product(), depthwise(),
          softmax(),     column_sums(),         whole_sum(),     turned_sum_of_maps()};
}

std::vector<std::string> names(const std::vector<NamedTemplate>& list) {
  std::vector<std::string> out;
  for (const NamedTemplate& t : list) out.push_back(t.name);
  return out;
}

}  // namespace

TEST_CASE("sketches: every formula at default and random points gives what the formula says") {
  constexpr int kPoints = 6;
  ThreadPool pool(2);
  Rng rng(11);
  for (const Named& f : formulas()) {
    const Task task(f.name, f.result, two_cores());
    const std::vector<Array> expected = outputs_of(task, {}, pool);
    const std::vector<NamedTemplate> sketches = sketches_for(task.program, task.target);
    INFO(f.name);
    REQUIRE_FALSE(sketches.empty());
    for (const NamedTemplate& sketch : sketches) {
      const KnobSpace space = survey(sketch.fn, task.program, task.target);
      for (int n = 0; n < kPoints; ++n) {
        const Point point = n == 0 ? space.default_point() : space.random_point(rng);
        INFO(sketch.name << " " << point.to_json());
        const Trace trace = at(task, sketch, point).trace();
        const Comparison c = compare_arguments(task, expected, outputs_of(task, trace, pool));
        INFO(c.reason);
        CHECK(c.passed);
      }
    }
  }
}

TEST_CASE("sketches: hardly a point is refused") {
  Rng rng(5);
  Refusals points;
  for (const Named& f : formulas()) {
    const Task task(f.name, f.result, two_cores());
    for (const NamedTemplate& sketch : sketches_for(task.program, task.target))
      points.count(task, sketch, 60, rng);
  }
  INFO(points.text());
  CHECK(points.refused * 50 <= points.tried);
}

TEST_CASE("sketches: the rules that fit, by the shape of the formula") {
  const auto rules = [](const Named& f) {
    return names(sketches_for(make_program(f.name, {f.result}), two_cores()));
  };
  CHECK(rules(product()) == std::vector<std::string>{"sketch.tile.j", "sketch.tile.i"});
  CHECK(rules(softmax()) == std::vector<std::string>{"sketch.rows"});
  CHECK(rules(turned_sum_of_maps()) == std::vector<std::string>{"sketch.map"});
  const std::vector<std::string> whole = rules(whole_sum());
  CHECK(std::count(whole.begin(), whole.end(), "sketch.pieces") == 1);
  // Scans keep their order: the generic template alone knows them.
  const Axis i("i", 8), t("t", 50);
  const Tensor x = input("X", f32, {8, 50});
  const Named running{"running",
                      scan("S", {i, t}, t, x(i, t), [&](Expr before) { return before + x(i, t); })};
  CHECK(rules(running).empty());
}

TEST_CASE("sketches: rows that two axes cut together can be packed along the inner one") {
  const AnchorNest nest = nest_of(blocked_convolution(), "Y");
  const Operand& w = nest.operands[1];
  CHECK(nest.dim_of(w, 3) == 0);
  CHECK(!nest.dim_of(w, 0));  // in steps of 16
  const std::vector<TileSketch> sketches = tile_sketches(nest, false, two_cores());
  CHECK(sketches[0].vector_axis == 3);
  CHECK(sketches[0].standard.pack[1] == "root");
}

TEST_CASE("sketches: lanes across rows are transposed where the rows go on behind them") {
  const Target target = two_cores();
  const AnchorNest nest = nest_of(blocked_convolution(), "Y");
  const Operand &x = nest.operands[0], &w = nest.operands[1];
  const TileSketch sketch = tile_sketches(nest, false, target)[0];
  CHECK(packing_of(sketch, sketch.standard, w, target).across);
  CHECK_FALSE(packing_of(sketch, sketch.standard, x, target).across);
  const AnchorNest depthwise_nest = nest_of(depthwise(), "Y");
  for (const TileSketch& other : tile_sketches(depthwise_nest, false, target)) {
    if (other.vector_axis != 0) continue;
    CHECK_FALSE(packing_of(other, other.standard, depthwise_nest.operands[0], target).across);
    CHECK(packing_of(other, other.standard, depthwise_nest.operands[1], target).across);
  }
}

TEST_CASE("sketches: an instruction that adds up groups is used where the target has it") {
  Target target = two_cores();
  const Program program = make_program("bytes", {bytes_product().result});
  const auto has_dots = [&] {
    const std::vector<std::string> rules = names(sketches_for(program, target));
    return std::count(rules.begin(), rules.end(), "sketch.dots.j") == 1;
  };
  target.vector_bits = 512;
  target.features = {"avx512f", "avx512bw", "avx512vl", "avx512vnni"};
  CHECK(has_dots());
  target.features = {"avx512f", "avx512bw", "avx512vl"};
  CHECK(!has_dots());
}

TEST_CASE("sketches: what the anchor reads, axis by axis") {
  const AnchorNest nest = nest_of(convolution(), "C");
  REQUIRE(nest.spatial == 3);
  REQUIRE(nest.axes.size() == 6);
  REQUIRE(nest.operands.size() == 2);
  const Operand &x = nest.operands[0], &w = nest.operands[1];
  CHECK(x.buffer == "P");
  CHECK(!x.moves(0));
  CHECK(x.moves(1));
  CHECK(!x.neighbours_along(2));
  CHECK(x.step_in_rows(2) == 2);
  CHECK(x.step_in_rows(1) == 0);
  CHECK(!nest.dim_of(x, 2));      // a window: q and v together
  CHECK(nest.dim_of(x, 3) == 0);  // the channels that are added up
  CHECK(nest.dim_of(w, 0) == 0);
  CHECK(w.neighbours_along(5));
  CHECK(nest.reuses_along(0));
  CHECK(nest.longest_reduction() == 3);
}

TEST_CASE(
    "sketches: windows that overlap are worth a register tile, every second element vectors") {
  const auto pooled = [](int64_t window) {
    const Axis c("c", 6), p("p", 20), q("q", 40), u("u", window), v("v", window);
    const Tensor x = input("X", f32, {6, 50, 90});
    return Named{"pooled",
                 compute("C", {c, p, q},
                         reduce_max(x(c, Expr(p) * 2 + Expr(u), Expr(q) * 2 + Expr(v)), {u, v}))};
  };
  const AnchorNest overlap = nest_of(pooled(3), "C"), apart = nest_of(pooled(2), "C");
  CHECK(overlap.reuses_along(1));
  CHECK(!overlap.reuses_along(0));
  CHECK(!apart.reuses_along(1));
  const std::vector<TileSketch> sketches = tile_sketches(overlap, false, two_cores());
  CHECK((sketches[0].vector_axis == 2 || sketches[1].vector_axis == 2));
  CHECK(sketches[0].nest->reuses_along(2));
  for (const TileSketch& s : sketches)
    if (s.vector_axis == 2) CHECK(s.main == 1);
}

TEST_CASE("sketches: the standard tile of a product keeps the multipliers busy") {
  Target target = two_cores();
  target.vector_bits = 512;
  target.vector_registers = 32;
  const Axis i("i", 1024), j("j", 1024), k("k", 1024);
  const Tensor a = input("A", f32, {1024, 1024}), b = input("B", f32, {1024, 1024});
  const Named big{"big", compute("C", {i, j}, sum(a(i, k) * b(k, j), k))};
  const std::vector<TileSketch> sketches = tile_sketches(nest_of(big, "C"), false, target);
  REQUIRE(sketches.size() == 2);
  REQUIRE(sketches[0].vector_axis == 1);
  const TilePlan& plan = sketches[0].standard;
  const int64_t sums = plan.inner[0] * plan.inner[1] / 16;
  CHECK(sums >= 20);  // of 32 registers, the vectors of B and one element of A beside them
  CHECK(sums + plan.inner[1] / 16 + 1 <= 30);
  CHECK(plan.pieces[1] == 4);  // 1024 x 256 of B are half of 2 MB
  CHECK(plan.pack == std::vector<std::string>{"no", "block"});
}
