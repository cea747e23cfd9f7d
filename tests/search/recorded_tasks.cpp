#include "search/recorded_tasks.h"

#include <tenon/ir/ops.h>

#include "autotvm/sketch/multi_level_tile.h"
#include "schedule/composites/row_chain.h"

namespace tenon {
namespace {

Tensor product() {
  const Axis i("i", 94), j("j", 120), k("k", 75);
  const Tensor a = input("A", f32, {94, 75}), b = input("B", f32, {75, 120});
  return compute("C", {i, j}, sum(a(i, k) * b(k, j), k));
}

Tensor convolution() {
  const Axis c("c", 12), y("y", 16), z("z", 16), o("o", 32), p("p", 14), q("q", 14), r("r", 12),
      u("u", 3), v("v", 3);
  const Tensor x = input("X", f32, {12, 14, 14}), w = input("W", f32, {32, 12, 3, 3});
  const Expr inside = Expr(y) >= 1 && Expr(y) < 15 && Expr(z) >= 1 && Expr(z) < 15;
  const Tensor pad =
      compute("P", {c, y, z}, select(inside, x(c, Expr(y) - 1, Expr(z) - 1), float_imm(0)));
  return compute("Y", {o, p, q},
                 sum(pad(r, Expr(p) + Expr(u), Expr(q) + Expr(v)) * w(o, r, u, v), {r, u, v}));
}

Tensor softmax() {
  const Axis i("i", 40), k("k", 513), i1("i1", 40), j("j", 513), i2("i2", 40), l("l", 513),
      i3("i3", 40), m("m", 513);
  const Tensor x = input("X", f32, {40, 513});
  const Tensor top = compute("top", {i}, reduce_max(x(i, k), {k}));
  const Tensor e = compute("e", {i1, j}, exp(x(i1, j) - top(i1)));
  const Tensor total = compute("total", {i2}, sum(e(i2, l), l));
  return compute("Y", {i3, m}, e(i3, m) / total(i3));
}

/// Tiles of one anchor with few numbers left open: the register tile, the steps, the packing.
Template tiles(const std::string& anchor, const std::string& vectors, const std::string& rows,
               int64_t standard_rows) {
  return [=](Schedule& s, Knobs& knobs) {
    const AnchorNest nest = find_anchor_nest(s.program(), anchor).value();
    for (const TileSketch& sketch : tile_sketches(nest, true, s.target())) {
      if (nest.axes[sketch.vector_axis].loop != vectors) continue;
      TilePlan plan = sketch.standard;
      for (size_t n = 0; n < nest.spatial; ++n) {
        if (n != sketch.vector_axis) plan.inner[n] = 1;
        if (nest.axes[n].loop == rows)
          plan.inner[n] = knobs.pick("rows", {1, 2, 3, 4, 6, 7, 8}, standard_rows);
      }
      plan.inner[sketch.vector_axis] =
          s.target().lanes(nest.dtype) * knobs.pick("vectors", {1, 2, 3}, 1);
      plan.steps = knobs.pick("steps", {1, 3, 9}, 1);
      plan.pack[1] = knobs.choice("pack", {"no", "block", "root"}, "no");
      plan.vector_tiles_first = knobs.flag("vector_tiles_first", false);
      return apply_tiles(s, sketch, plan);
    }
  };
}

void rows(Schedule& s, Knobs& knobs) {
  RowOptions options;
  options.parts = s.target().lanes(f32) * knobs.pick("parts", {0, 1, 2, 3, 4, 6, 8}, 0);
  options.map_vectors = knobs.pick("vectors", {1, 2, 3, 4, 6, 8}, 1);
  options.lanes = knobs.flag("lanes", true);
  options.apart = knobs.flag("apart", true);
  schedule_rows(s, options);
}

}  // namespace

std::vector<RecordedTask> recorded_tasks(const Target& target) {
  const auto log = [](const char* name) {
    return std::string(TENON_SOURCE_DIR "/tests/search/") + name + ".jsonl";
  };
  const auto task = [&](const char* name, const Tensor& result, Template fn) {
    return RecordedTask{Task(name, {result}, {{"recorded", std::move(fn)}}, target), log(name)};
  };
  return {task("product_94x120x75", product(), tiles("C", "j", "i", 1)),
          task("conv_12x14x14_to_32", convolution(), tiles("Y", "o", "q", 6)),
          task("softmax_40x513", softmax(), rows)};
}

}  // namespace tenon
