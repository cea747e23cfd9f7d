#include "compile/in_place.h"

#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>

#include <catch2/catch.hpp>

using namespace tenon;

namespace {

constexpr int64_t kN = 40;

std::vector<InPlacePair> pairs_of(
    const std::vector<Tensor>& outputs,
    const std::function<void(Schedule&)>& steps = [](Schedule&) {}) {
  Schedule s(make_program("p", outputs), Target::host());
  steps(s);
  return in_place_pairs(s.program());
}

Tensor map_of(const std::string& name, const std::function<Expr(Expr)>& f) {
  const Axis i("i", kN);
  return compute(name, {i}, f(i));
}

}  // namespace

TEST_CASE("an output may replace an input that is read at the same element alone") {
  const Tensor x = input("X", f32, {kN}), y = input("Y", f32, {kN}), z = input("Z", i32, {kN});
  const Tensor next = map_of("out", [&](Expr i) { return x(i) * y(i) + x(i); });
  const std::vector<InPlacePair> pairs = pairs_of({next});
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[0].input == 0);
  CHECK(pairs[1].input == 1);
  CHECK(pairs[0].output == 2);
  CHECK(pairs_of({next}, [](Schedule& s) {
          const SplitLoops loops = s.split("i", 16);
          s.vectorize(loops.inner).parallel(loops.outer);
        }).size() == 2);
  const Tensor other_type = map_of("out", [&](Expr i) { return cast(f32, z(i)); });
  CHECK(pairs_of({other_type}).empty());
}

TEST_CASE("an output does not replace an input that is read elsewhere too") {
  const Tensor x = input("X", f32, {kN});
  const Tensor stencil =
      map_of("out", [&](Expr i) { return select(i > 0, x(i - 1), x(i)) + x(i); });
  CHECK(pairs_of({stencil}).empty());
  CHECK(pairs_of({map_of("out", [&](Expr i) { return x((kN - 1) - i); })}).empty());
  const Tensor a = map_of("A", [&](Expr i) { return x(i) * 2.0; });
  CHECK(pairs_of({map_of("out", [&](Expr i) { return a(i) + x(i); })}).empty());
  const Axis i("i", kN), k("k", 3);
  CHECK(pairs_of({compute("out", {i}, sum(x(i), k))}).empty());  // each element is read three times
  const Tensor next = map_of("out", [&](Expr i) { return x(i) + 1.0; });
  CHECK(pairs_of({next}, [](Schedule& s) { s.cache_read("X", s.split("i", 8).outer); }).empty());
  const Tensor also = map_of("also", [&](Expr i) { return next(i) * x(i); });
  CHECK(pairs_of({next, also}).empty());
}

TEST_CASE("a kernel is called in place where it may be, with the whole array") {
  const Tensor x = input("X", f32, {kN});
  Schedule s(make_program("next", {map_of("out", [&](Expr i) { return x(i) + 1.0; })}),
             Target::host());
  s.vectorize(s.split("i", 16).inner);
  const Kernel kernel = compile(s.program(), Target::host());
  const Array memory = full(f32, {kN + 1}, 4), a = memory.view(0, {kN});
  kernel(a, a);
  CHECK(a.to_doubles() == std::vector<double>(kN, 5));
  CHECK_THROWS_WITH(
      kernel(a, memory.view(1, {kN})),
      Catch::Contains("output out overlaps argument X in memory; only all of it may"));
}
