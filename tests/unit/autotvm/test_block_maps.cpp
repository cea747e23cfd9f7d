#include <tenon/ir/ops.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "autotvm/sketch/blocks.h"
#include "tests/unit/autotvm/sketched.h"

using namespace tenon;

// Maps before a sum that are computed at a block of it: borders, factors, at sizes that no tile
// divides.
namespace {

/// x with a border of zeros along its last two dimensions.
Tensor bordered(const std::string& name, const Tensor& x, int64_t channels, int64_t h, int64_t w,
                int64_t border) {
  const Axis c("c", channels), y("y", h + 2 * border), z("z", w + 2 * border);
  const Expr inside = Expr(y) >= Expr(border) && Expr(y) < Expr(h + border) &&
                      Expr(z) >= Expr(border) && Expr(z) < Expr(w + border);
  return compute(
      name, {c, y, z},
      select(inside, x(c, Expr(y) - Expr(border), Expr(z) - Expr(border)), float_imm(0)));
}

Named strided() {
  const Axis o("o", 21), p("p", 9), q("q", 11), r("r", 5), u("u", 3), v("v", 3);
  const Tensor x = input("X", f32, {5, 17, 21}), w = input("W", f32, {21, 5, 3, 3});
  const Tensor pad = bordered("P", x, 5, 17, 21, 1);
  return {"strided",
          compute("C", {o, p, q},
                  sum(pad(r, Expr(p) * 2 + Expr(u), Expr(q) * 2 + Expr(v)) * w(o, r, u, v),
                      {r, u, v}))};
}

/// Taps two apart; the result goes through a map.
Named dilated() {
  const Axis o("o", 18), p("p", 13), q("q", 35), r("r", 7), u("u", 3), v("v", 3), o2("o2", 18),
      p2("p2", 13), q2("q2", 35);
  const Tensor x = input("X", f32, {7, 13, 35}), w = input("W", f32, {18, 7, 3, 3});
  const Tensor pad = bordered("P", x, 7, 13, 35, 2);
  const Tensor conv =
      compute("C", {o, p, q},
              sum(pad(r, Expr(p) + Expr(u) * 2, Expr(q) + Expr(v) * 2) * w(o, r, u, v), {r, u, v}));
  return {"dilated", compute("R", {o2, p2, q2}, max(conv(o2, p2, q2), Expr(0.0)))};
}

/// Along one dimension, two images, the border once on each side; what is padded is a map itself.
Named line() {
  const Axis b("b", 2), c("c", 11), z("z", 75), n("n", 2), o("o", 19), q("q", 37), r("r", 11),
      v("v", 3), d("d", 2), e("e", 11), f("f", 73);
  const Tensor x = input("X", f32, {2, 11, 73}), w = input("W", f32, {19, 11, 3});
  const Tensor half = compute("H", {d, e, f}, x(d, e, f) * Expr(0.5));
  const Expr inside = Expr(z) >= 1 && Expr(z) < 74;
  const Tensor pad = compute("P", {b, c, z}, select(inside, half(b, c, Expr(z) - 1), float_imm(0)));
  return {"line",
          compute("C", {n, o, q}, sum(pad(n, r, Expr(q) * 2 + Expr(v)) * w(o, r, v), {r, v}))};
}

/// The largest of windows, nothing is used twice but by windows that overlap.
Named pooled() {
  const Axis c("o", 6), p("p", 9), q("q", 23), u("u", 3), v("v", 3);
  const Tensor x = input("X", f32, {6, 17, 45});
  const Tensor pad = bordered("P", x, 6, 17, 45, 1);
  return {"pooled",
          compute("C", {c, p, q},
                  reduce_max(pad(c, Expr(p) * 2 + Expr(u), Expr(q) * 2 + Expr(v)), {u, v}))};
}

/// Bytes in groups of four, the left factor one more first.
Named shifted_bytes() {
  const Axis i("i", 21), j("j", 37), k("k", 48), m("m", 21), l("l", 48);
  const Tensor a = input("A", u8, {21, 48}), b = input("B", i8, {48, 37});
  const Tensor p = compute("P", {m, l}, a(m, l) + cast(u8, Expr(1)));
  return {"shifted_bytes", compute("C", {i, j}, sum(cast(i32, p(i, k)) * cast(i32, b(k, j)), k))};
}

std::vector<Named> formulas() { return {strided(), dilated(), line(), pooled(), shifted_bytes()}; }

bool has_stage(const Schedule& s, const std::string& name) {
  const std::vector<std::string> stages = s.stages();
  return std::count(stages.begin(), stages.end(), name) > 0;
}

bool has_word(const KnobSpace& space, const std::string& knob, const std::string& word) {
  for (const Domain& d : space.domains)
    if (d.name == knob) return d.contains(word);
  return false;
}

/// A random point whose maps are computed in copies made there; nothing where none is allowed.
std::optional<Point> placed_point(const KnobSpace& space, const std::string& word, Rng& rng) {
  for (int draw = 0; draw < 200; ++draw) {
    Point point = space.random_point(rng);
    point.values["inline"] = int64_t{1};
    point.values["pack.P"] = word;
    if (!space.why_not(point)) return point;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("block maps: at every place the interpreter and the kernel give the formula's result") {
  ThreadPool pool(2);
  Rng rng(17);
  for (const Named& f : formulas()) {
    const Task task(f.name, f.result, two_cores());
    const std::vector<Array> expected = interpreted(task, task.program);
    int placed = 0;
    for (const NamedTemplate& sketch : sketches_for(task.program, task.target)) {
      const KnobSpace space = survey(sketch.fn, task.program, task.target);
      for (const char* word : {"block", "outer"}) {
        if (!has_word(space, "pack.P", word)) continue;
        for (int n = 0; n < 2; ++n) {
          const auto point = placed_point(space, word, rng);
          if (!point) continue;
          ++placed;
          INFO(f.name << " " << sketch.name << " " << point->to_json());
          const Schedule s = at(task, sketch, *point);
          CHECK(has_stage(s, "P.cache"));
          CHECK_FALSE(has_stage(s, "P"));
          CHECK(difference(task, expected, s, &pool) == "");
        }
      }
    }
    INFO(f.name);
    CHECK(placed > 0);
  }
}

TEST_CASE("block maps: the copy stands inside the block loop and computes a block") {
  const Named f = dilated();
  const Task task(f.name, f.result, two_cores());
  const AnchorNest nest = nest_of(f, "C");
  for (TileSketch sketch : tile_sketches(nest, true, task.target)) {
    if (sketch.vector_axis != 0) continue;
    TilePlan plan = sketch.standard;
    plan.inner = {task.target.lanes(f32), 2, 4};
    plan.pieces = {1, 3, 1};
    plan.pack = {"block", "root"};
    plan.inlined = true;
    Schedule s(task.program, task.target);
    apply_tiles(s, sketch, plan);
    const std::string text = s.print();
    INFO(text);
    CHECK(text.find("for y in 0..10") != std::string::npos);  // 2*3 rows and 4 of the border
    CHECK(text.find("for p.o in 0..3") < text.find("stage P.cache"));
    CHECK(text.find("select(") != std::string::npos);
    return;
  }
  FAIL("no sketch with vectors along the channels");
}

TEST_CASE("block maps: how often elements are computed at a block") {
  const AnchorNest nest = nest_of(dilated(), "C");
  TileSketch sketch{std::make_shared<const AnchorNest>(nest), 0, true};
  TilePlan plan;
  plan.inner = {16, 2, 4};
  plan.pieces = {2, 3, 1};
  plan.pack = {"block", "no"};
  const auto times = [&] {
    const BlockLoops blocks = block_loops_of(sketch, plan);
    return copied_share(sketch, blocks, nest.operands[0],
                        *copy_block(blocks, nest.operands[0], plan.pack[0]));
  };
  // Three blocks of 10 rows of 17 in each of two blocks of channels; once where those are inside.
  CHECK(times().value() == Approx(2 * 3 * 10.0 / 17));
  plan.vector_blocks_first = false;
  CHECK(times().value() == Approx(3 * 10.0 / 17));
  plan.pieces[1] = 1;
  CHECK_FALSE(copy_block(block_loops_of(sketch, plan), nest.operands[0], "block"));
}

TEST_CASE("block maps: what would be computed too often is refused, with the reason") {
  // Columns of 13 with little work for each element: blocks of few rows read many more.
  const Axis c("o", 6), p("p", 256), q("q", 57), u("u", 13);
  const Tensor x = input("X", f32, {6, 256, 45});
  const Tensor pad = bordered("P", x, 6, 256, 45, 6);
  const Named f{"windows", compute("C", {c, p, q}, reduce_max(pad(c, Expr(p) + Expr(u), q), {u}))};
  const Task task(f.name, f.result, two_cores());
  const NamedTemplate sketch = sketches_for(task.program, task.target).front();
  const KnobSpace space = survey(sketch.fn, task.program, task.target);
  Point point = space.default_point();
  point.values["inline"] = int64_t{1};
  point.values["inner.p"] = int64_t{1};
  point.values["pieces.p"] = int64_t{1};
  point.values["pack.P"] = std::string("block");
  CHECK_FALSE(space.why_not(point).has_value());
  for (const Domain& d : space.domains)
    if (d.name == "pieces.p") point.values["pieces.p"] = d.values.back();
  REQUIRE(space.why_not(point).has_value());
  CHECK(space.why_not(point)->find("computed too often") != std::string::npos);
  point.values["pack.P"] = std::string("outer");
  CHECK_FALSE(space.why_not(point).has_value());
}

TEST_CASE("block maps: an image beyond the second cache is padded block by block by default") {
  Target target = two_cores();
  target.l2_bytes = 64 << 10;
  const AnchorNest nest = nest_of(dilated(), "C");  // 7 x 17 x 39 floats: 18 KB
  const auto standard = [&](bool prologue) {
    for (const TileSketch& s : tile_sketches(nest, prologue, target))
      if (s.vector_axis == 0) return s.standard;
    FAIL("no sketch with vectors along the channels");
    return TilePlan{};
  };
  CHECK(standard(true).pack[0] == "no");
  target.l2_bytes = 24 << 10;
  CHECK(standard(true).pack[0] == "block");
  CHECK(standard(true).inlined);
  CHECK(standard(false).pack[0] == "no");
}
