#include <tenon/ir/ops.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/autotvm/sketched.h"

using namespace tenon;

// Chains with products among their reductions, computed in blocks of rows; sizes that no block
// divides.
namespace {

/// softmax(Q K^T) V, as a user writes it.
Named attention() {
  const Axis h("h", 3), i("i", 13), j("j", 37), d("d", 21), h1("h1", 3), i1("i1", 13), j1("j1", 37),
      h2("h2", 3), i2("i2", 13), j2("j2", 37), h3("h3", 3), i3("i3", 13), j3("j3", 37), h4("h4", 3),
      i4("i4", 13), e("e", 19), j4("j4", 37), h5("h5", 3), i5("i5", 13), e5("e5", 19);
  const Tensor q = input("Q", f32, {3, 13, 21}), k = input("K", f32, {3, 37, 21}),
               v = input("V", f32, {3, 37, 19});
  const Tensor s = compute("S", {h, i, j}, sum(q(h, i, d) * k(h, j, d), d));
  const Tensor top = compute("top", {h1, i1}, reduce_max(s(h1, i1, j1), {j1}));
  const Tensor p = compute("E", {h2, i2, j2}, exp(s(h2, i2, j2) - top(h2, i2)));
  const Tensor total = compute("total", {h3, i3}, sum(p(h3, i3, j3), j3));
  const Tensor w = compute("W", {h4, i4, e}, sum(p(h4, i4, j4) * v(h4, j4, e), j4));
  return {"attention", compute("Y", {h5, i5, e5}, w(h5, i5, e5) / total(h5, i5))};
}

/// relu(X A) B: two products, the second the last stage.
Named two_layers() {
  const Axis i("i", 29), j("j", 43), k("k", 17), i1("i1", 29), j1("j1", 43), m("m", 29), n("n", 23),
      l("l", 43);
  const Tensor x = input("X", f32, {29, 17}), a = input("A", f32, {17, 43}),
               b = input("B", f32, {43, 23});
  const Tensor h = compute("H", {i, j}, sum(x(i, k) * a(k, j), k));
  const Tensor r = compute("R", {i1, j1}, max(h(i1, j1), Expr(0.0)));
  return {"two_layers", compute("Y", {m, n}, sum(r(m, l) * b(l, n), l))};
}

/// A product whose rows are normalised.
Named normalised() {
  const Axis i("i", 31), j("j", 50), k("k", 24), i1("i1", 31), j1("j1", 50), i2("i2", 31),
      j2("j2", 50);
  const Tensor x = input("X", f32, {31, 24}), a = input("A", f32, {50, 24});
  const Tensor h = compute("H", {i, j}, sum(x(i, k) * a(j, k), k));
  const Tensor squares = compute("squares", {i1}, sum(h(i1, j1) * h(i1, j1), j1));
  return {"normalised", compute("Y", {i2, j2}, h(i2, j2) / sqrt(squares(i2) + Expr(1.0)))};
}

std::vector<Named> formulas() { return {attention(), two_layers(), normalised()}; }

std::optional<NamedTemplate> block_sketch(const Program& program, const Target& target) {
  for (NamedTemplate& t : sketches_for(program, target))
    if (t.name == "sketch.row_blocks") return std::move(t);
  return std::nullopt;
}

}  // namespace

TEST_CASE("row blocks: the interpreter and the kernel give the formula's result") {
  constexpr int kPoints = 5;
  ThreadPool pool(2);
  Rng rng(31);
  for (const Named& f : formulas()) {
    const Task task(f.name, f.result, two_cores());
    const std::vector<Array> expected = interpreted(task, task.program);
    const auto sketch = block_sketch(task.program, task.target);
    INFO(f.name);
    REQUIRE(sketch.has_value());
    const KnobSpace space = survey(sketch->fn, task.program, task.target);
    REQUIRE_FALSE(space.why_not(space.default_point()).has_value());
    for (int n = 0; n < kPoints; ++n) {
      const Point point = n == 0 ? space.default_point() : space.random_point(rng);
      INFO(point.to_json());
      CHECK(difference(task, expected, at(task, *sketch, point), &pool) == "");
    }
  }
}

TEST_CASE("row blocks: hardly a point is refused") {
  Rng rng(37);
  Refusals points;
  for (const Named& f : formulas()) {
    const Task task(f.name, f.result, two_cores());
    points.count(task, block_sketch(task.program, task.target).value(), 60, rng);
  }
  INFO(points.text());
  CHECK(points.refused * 50 <= points.tried);
}

TEST_CASE("row blocks: everything of a block of rows stands inside its loop, products in tiles") {
  const Named f = attention();
  const Task task(f.name, f.result, two_cores());
  const NamedTemplate sketch = block_sketch(task.program, task.target).value();
  Point point = survey(sketch.fn, task.program, task.target).default_point();
  point.values["block"] = int64_t{8};
  point.values["rows.S"] = int64_t{4};
  point.values["rows.W"] = int64_t{2};
  const std::string text = at(task, sketch, point).print();
  INFO(text);
  const size_t block = text.find("for h5_i5.o in 0..6");
  REQUIRE(block != std::string::npos);
  for (const char* stage : {"stage S:", "stage top[", "stage E[", "stage total[", "stage W:"})
    CHECK(text.find(stage) > block);
  CHECK(text.find("stage K.packed") < block);  // read across the vectors: in panels, once
  CHECK(text.find("stage V.packed") == std::string::npos);
  CHECK(text.find("S.cache[3,13,37] f32 register") != std::string::npos);
}

TEST_CASE("row blocks: only chains with a product, read row by row") {
  const auto has_blocks = [](const Named& f) {
    return block_sketch(make_program(f.name, {f.result}), two_cores()).has_value();
  };
  const Axis i("i", 33), k("k", 65), i1("i1", 33), j("j", 65);
  const Tensor x = input("X", f32, {33, 65});
  const Tensor total = compute("total", {i}, sum(x(i, k), k));
  CHECK_FALSE(has_blocks({"shares", compute("Y", {i1, j}, x(i1, j) / total(i1))}));
  // A second convolution needs more rows of the first than its own.
  const Axis p("p", 20), o("o", 16), r("r", 8), u("u", 3), q("q", 18), n("n", 16), t("t", 16),
      w("w", 3);
  const Tensor z = input("Z", f32, {22, 8}), a = input("A", f32, {8, 3, 16}),
               b = input("B", f32, {16, 3, 16});
  const Tensor first = compute("F", {p, o}, sum(z(Expr(p) + Expr(u), r) * a(r, u, o), {r, u}));
  const Tensor second = compute("G", {q, n}, sum(first(Expr(q) + Expr(w), t) * b(t, w, n), {t, w}));
  const Task chain("convolutions", second, two_cores());
  const auto sketch = block_sketch(chain.program, chain.target);
  REQUIRE(sketch.has_value());  // tiles of the first alone
  const KnobSpace space = survey(sketch->fn, chain.program, chain.target);
  for (const Domain& d : space.domains) CHECK(d.name != "rows.G");
  CHECK_NOTHROW(at(chain, *sketch, space.default_point()));
}
