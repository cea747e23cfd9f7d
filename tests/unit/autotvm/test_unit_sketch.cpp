#include <tenon/ir/ops.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "autotvm/model/draft.h"
#include "tests/unit/autotvm/sketched.h"

using namespace tenon;

// Sketches on a matrix unit. Schedules are made for a machine that has one, whether or not this one
// does: the interpreter runs them all.
namespace {

bool host_has_unit() {
  const Target host = Target::host();
  return host.has_feature("amx-int8") && host.has_feature("amx-bf16");
}

Target unit_target() {
  Target target = two_cores();
  if (host_has_unit()) return target;
  target.name = "x86-64/avx512";
  target.vector_bits = 512;
  target.vector_registers = 32;
  target.has_fma = target.has_masks = true;
  target.features = {"amx-bf16", "amx-int8", "amx-tile", "avx512bw", "avx512f", "avx512vl"};
  return target;
}

/// Rows that no tile divides; lanes and steps are whole.
Named bytes() {
  const Axis i("i", 37), j("j", 48), k("k", 128);
  const Tensor a = input("A", u8, {37, 128}), b = input("B", i8, {128, 48});
  return {"bytes", compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k))};
}

/// Nothing is whole: the operands are padded. A map after it.
Named odd_bytes() {
  const Axis i("i", 19), j("j", 41), k("k", 83), m("m", 19), n("n", 41);
  const Tensor a = input("A", i8, {19, 83}), b = input("B", i8, {83, 41}),
               bias = input("bias", i32, {41});
  const Tensor c = compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k));
  return {"odd_bytes", compute("D", {m, n}, c(m, n) + bias(n))};
}

/// Both factors the other way round, in batches.
Named turned_halves() {
  const Axis h("h", 3), i("i", 21), j("j", 32), k("k", 64);
  const Tensor a = input("A", bf16, {3, 64, 21}), b = input("B", bf16, {3, 32, 64});
  return {"turned_halves",
          compute("C", {h, i, j}, sum(cast(f32, a(h, k, i)) * cast(f32, b(h, j, k)), k))};
}

/// Channels last, the image padded first, steps of two.
Named image() {
  const Axis y("y", 11), z("z", 13), c("c", 64), p("p", 5), q("q", 6), o("o", 16), u("u", 3),
      v("v", 3), r("r", 64);
  const Tensor x = input("X", u8, {9, 11, 64}), w = input("W", i8, {3, 3, 64, 16});
  const Expr inside = Expr(y) >= 1 && Expr(y) < 10 && Expr(z) >= 1 && Expr(z) < 12;
  const Tensor pad =
      compute("P", {y, z, c}, select(inside, x(Expr(y) - 1, Expr(z) - 1, c), cast(u8, Expr(0))));
  return {"image", compute("Y", {p, q, o},
                           sum(cast(i32, pad(Expr(p) * 2 + Expr(u), Expr(q) * 2 + Expr(v), r)) *
                                   cast(i32, w(u, v, r, o)),
                               {u, v, r}))};
}

/// Channels in blocks: the weights' rows are cut by two axes, and so are the steps.
Named blocked_image() {
  const Axis b("b", 2), p("p", 5), q("q", 7), o("o", 32), d("d", 2), u("u", 3), v("v", 1),
      r("r", 64);
  const Tensor x = input("X", u8, {2, 7, 7, 64}), w = input("W", i8, {64, 128, 3, 1});
  return {"blocked_image",
          compute("Y", {b, p, q, o},
                  sum(cast(i32, x(d, Expr(p) + Expr(u), Expr(q) + Expr(v), r)) *
                          cast(i32, w(Expr(b) * 32 + Expr(o), Expr(d) * 64 + Expr(r), u, v)),
                      {d, u, v, r}))};
}

std::vector<Named> formulas() {
  return {bytes(), odd_bytes(), turned_halves(), image(), blocked_image()};
}

std::optional<NamedTemplate> unit_sketch(const Program& program, const Target& target) {
  for (NamedTemplate& t : sketches_for(program, target))
    if (t.name.rfind("sketch.unit.", 0) == 0) return std::move(t);
  return std::nullopt;
}

bool uses_tiles(const Schedule& s) {
  return s.print().find("tensorize tile_") != std::string::npos;
}

TileSketch sketch_on_unit(const Named& f, const std::string& stage, const Target& target) {
  const Program program = make_program(f.name, {f.result});
  const auto nest = find_anchor_nest(program, stage).value();
  const std::vector<TileSketch> all = unit_sketches(program, nest, false, target);
  REQUIRE(all.size() == 1);
  return all[0];
}

}  // namespace

TEST_CASE("matrix unit: every formula on tiles gives the formula's result at random points") {
  constexpr int kPoints = 5;
  Rng rng(23);
  ThreadPool pool(2);
  for (const Named& f : formulas()) {
    const Task task(f.name, f.result, unit_target());
    const std::vector<Array> expected = interpreted(task, task.program);
    const auto sketch = unit_sketch(task.program, task.target);
    INFO(f.name);
    REQUIRE(sketch.has_value());
    const KnobSpace space = survey(sketch->fn, task.program, task.target);
    REQUIRE_FALSE(space.why_not(space.default_point()).has_value());
    for (int n = 0; n < kPoints; ++n) {
      const Point point = n == 0 ? space.default_point() : space.random_point(rng);
      INFO(point.to_json());
      const Schedule s = at(task, *sketch, point);
      INFO(s.print());
      CHECK(uses_tiles(s));
      CHECK(difference(task, expected, s, host_has_unit() ? &pool : nullptr) == "");
    }
  }
}

TEST_CASE("matrix unit: hardly a point is refused") {
  Rng rng(29);
  Refusals points;
  for (const Named& f : formulas()) {
    const Task task(f.name, f.result, unit_target());
    const auto sketch = unit_sketch(task.program, task.target);
    REQUIRE(sketch.has_value());
    points.count(task, *sketch, 40, rng);
  }
  INFO(points.text());
  CHECK(points.refused * 50 <= points.tried);
}

TEST_CASE("matrix unit: a sketch only where the target has the unit and the formula is a product") {
  const auto has_sketch = [](const Named& f, const Target& target) {
    return unit_sketch(make_program(f.name, {f.result}), target).has_value();
  };
  Target target = unit_target();
  CHECK(has_sketch(bytes(), target));
  CHECK(has_sketch(turned_halves(), target));
  target.features = {"amx-int8", "amx-tile", "avx512f"};
  CHECK(has_sketch(bytes(), target));
  CHECK_FALSE(has_sketch(turned_halves(), target));
  // Wide numbers; too few steps for a tile.
  const Axis i("i", 32), j("j", 32), k("k", 64), few("k", 8);
  const Tensor a = input("A", f32, {32, 64}), b = input("B", f32, {64, 32});
  CHECK_FALSE(has_sketch({"wide", compute("C", {i, j}, sum(a(i, k) * b(k, j), k))}, target));
  const Tensor s = input("A", i8, {32, 8}), t = input("B", i8, {8, 32});
  CHECK_FALSE(has_sketch(
      {"short", compute("C", {i, j}, sum(cast(i32, s(i, few)) * cast(i32, t(few, j)), few))},
      target));
}

TEST_CASE("matrix unit: the part of each axis") {
  const Target target = unit_target();
  const TileSketch whole = sketch_on_unit(bytes(), "C", target);
  CHECK(whole.unit->rows == 0);
  CHECK_FALSE(whole.unit->tiles);
  CHECK(whole.unit->paddings.empty());
  CHECK(whole.sum_axis == 2);
  CHECK(whole.nest->axes[2].extent == 32);  // groups of four
  const TileSketch odd = sketch_on_unit(odd_bytes(), "C", target);
  CHECK(odd.unit->paddings == std::vector<int64_t>{1, 16, 64});
  CHECK(odd.nest->axes[1].extent == 48);
  CHECK(odd.standard.inlined);
  // Short rows of the image are a tile each.
  const TileSketch pixels = sketch_on_unit(image(), "Y", target);
  CHECK(pixels.unit->rows == 1);
  CHECK(pixels.unit->tiles == 0);
  CHECK(pixels.nest->axes[pixels.sum_axis].loop == "r");
  const TileSketch blocks = sketch_on_unit(blocked_image(), "Y", target);
  CHECK(blocks.unit->rows == 2);
  CHECK(blocks.unit->tiles == 1);
}

TEST_CASE("matrix unit: the standard tiles of a large product") {
  const Axis i("i", 1024), j("j", 1024), k("k", 1024);
  const Tensor a = input("A", bf16, {1024, 1024}), b = input("B", bf16, {1024, 1024});
  const Named f{"large", compute("C", {i, j}, sum(cast(f32, a(i, k)) * cast(f32, b(k, j)), k))};
  Target target = unit_target();
  target.l2_bytes = 2 << 20;
  const TilePlan plan = sketch_on_unit(f, "C", target).standard;
  CHECK(plan.inner == std::vector<int64_t>{32, 32});  // two by two tiles of sums
  CHECK(plan.pack == std::vector<std::string>{"no", "block"});
  CHECK(plan.pieces[1] == 4);  // 512 bytes of a row
}

TEST_CASE(
    "matrix unit: the draft counts products of tiles, four times as many at once by two by two") {
  const Axis i("i", 512), j("j", 512), k("k", 512);
  const Tensor a = input("A", u8, {512, 512}), b = input("B", i8, {512, 512});
  const Task task("square", compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k)),
                  unit_target());
  const NamedTemplate sketch = unit_sketch(task.program, task.target).value();
  Point point = survey(sketch.fn, task.program, task.target).default_point();
  point.values["pack.B"] = std::string("root");
  point.values["pieces.j"] = int64_t{1};
  const auto drafted = [&](int64_t rows, int64_t lanes) {
    point.values["row_tiles"] = rows;
    point.values["lane_tiles"] = lanes;
    return draft(at(task, sketch, point).program(), task.target, 1);
  };
  const Draft square = drafted(2, 2), single = drafted(1, 1);
  // 512 x 512 x 512 / (16 x 16 x 64) products, each of some 16 cycles.
  const double products = 32 * 32 * 8;
  CHECK(square.features.steps == Approx(products / 4));
  CHECK(square.features.compute_cycles > products * 16);
  CHECK(square.features.compute_cycles < products * 30);
  CHECK(square.features.accumulators == 4);
  CHECK(single.features.steps == Approx(products));
  CHECK(single.cycles > 1.1 * square.cycles);
  CHECK_FALSE(square.hopeless);
  // Steps go through the panels of B once for each tile of rows, not for each row.
  CHECK(square.features.near_bytes < 32 * 2 * 512 * 512.0);
}
