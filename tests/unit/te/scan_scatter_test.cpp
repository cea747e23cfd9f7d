#include <tenon/ir/program_json.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

std::vector<std::string> stage_names(const Program& p) {
  std::vector<std::string> names;
  for (const StagePath& path : stage_paths(p.body)) names.push_back(path.stage->name);
  return names;
}

using Names = std::vector<std::string>;

Program running_sum() {
  const Tensor x = input("x", i32, {3, 5});
  const Axis i("i", 3), t("t", 5);
  return make_program(
      "p", {scan("S", {i, t}, t, x(i, t), [&](Expr before) { return before + x(i, t); })});
}

Program histogram() {
  const Tensor x = input("x", i32, {100});
  const Axis b("b", 7), i("i", 100);
  return make_program("p", {scatter("H", {b}, int_imm(0, i32), {i}, {x(i)}, 1)});
}

}  // namespace

TEST_CASE("a scan is a map that reads itself one step back along a sequential axis") {
  const Program p = running_sum();
  const auto paths = stage_paths(p.body);
  REQUIRE(paths.size() == 1);
  const Stage& s = *paths[0].stage;
  CHECK(s.axes[0].kind == AxisKind::spatial);
  CHECK(s.axes[1].kind == AxisKind::sequential);
  CHECK(paths[0].loops[1]->kind == AxisKind::sequential);
  CHECK_FALSE(s.combiner);
  CHECK_THAT(print(p), Contains("for t in 0..5  sequential") &&
                           Contains("select(t < 1, x[i, t], S[i, t-1] + x[i, t])"));
  CHECK(p.params.size() == 2);
  CHECK(print(merge_dimensions(p)) == print(p));
}

TEST_CASE("the states of a scan step together, along any axis") {
  const Tensor x = input("x", i64, {5, 4});
  const Axis t("t", 5), i("i", 4);
  const auto fibonacci =
      scan_tuple("F", {t, i}, t, {x(t, i), int_imm(1)}, [&](const std::vector<Expr>& before) {
        return std::vector<Expr>{before[0] + before[1], before[0]};
      });
  const Program p = make_program("p", {fibonacci[0]});
  const Stage& s = *stage_paths(p.body)[0].stage;
  CHECK(s.outputs.size() == 2);
  CHECK(s.axes[0].kind == AxisKind::sequential);
  CHECK_THAT(print(p), Contains("F.v0[t-1, i] + F.v1[t-1, i]"));
}

TEST_CASE("a scatter starts all elements and then joins its parts") {
  const Program p = histogram();
  CHECK(stage_names(p) == Names{"H.init", "H"});
  const auto paths = stage_paths(p.body);
  const Stage& s = *paths[1].stage;
  CHECK(s.axes[0].kind == AxisKind::reduce);
  CHECK(s.combiner->name == "sum");
  CHECK(s.init.empty());
  CHECK_THAT(print(p), Contains("H[max(min(i64(x[i]), 6), 0)] +="));
}

TEST_CASE("a source that alone is an index is spatial and needs no check") {
  const Tensor x = input("x", f32, {9, 4}), at = input("at", i32, {9}), s = input("s", f32, {6, 4});
  const Axis r("r", 6), c("c", 4), i("i", 9), j("j", 4);
  const Program p = make_program("p", {scatter("Y", {r, c}, s(r, c), {i, j}, {at(i), j}, x(i, j))});
  const Stage& stage = *stage_paths(p.body)[1].stage;
  REQUIRE(stage.axes.size() == 2);
  CHECK(stage.axes[0].axis.var.name() == "j");
  CHECK(stage.axes[0].kind == AxisKind::spatial);
  CHECK(stage.axes[1].kind == AxisKind::reduce);
  CHECK(stage.indices[1].as<VarRef>());
  // Twice on a diagonal: then its points may meet others.
  const Tensor z = input("z", f32, {4});
  const Axis k("k", 4), u("u", 4), v("v", 4);
  const Program q = make_program(
      "q", {scatter("Y", {u, v}, float_imm(0), {k}, {k, floor_div(Expr(k), 2)}, z(k))});
  CHECK(stage_paths(q.body)[1].stage->axes[0].kind == AxisKind::reduce);
}

TEST_CASE("a scatter into nothing is its start and a reduction inside becomes a stage before it") {
  const Tensor x = input("x", i32, {9, 4});
  const Axis none("n", 0), i("i", 9), k("k", 4), b("b", 7);
  const Program p =
      make_program("p", {scatter("H", {none}, int_imm(0, i32), {i}, {x(i, 0)}, int_imm(1, i32))});
  CHECK(stage_names(p) == Names{"H"});
  const Program q =
      make_program("q", {scatter("H", {b}, int_imm(0, i32), {i}, {x(i, 0)}, sum(x(i, k), k))});
  CHECK(stage_names(q) == Names{"H.r0", "H.init", "H"});
}

TEST_CASE("programs with scans and scatters survive JSON") {
  for (const Program& p : {running_sum(), histogram()}) {
    const Program again = program_from_json(to_json(p));
    CHECK(print(again) == print(p));
    CHECK(verify_errors(again, Form::LoopTree).empty());
  }
}

TEST_CASE("wrong scans are refused where they are written") {
  const Tensor x = input("x", i32, {3, 5}), w = input("w", i32, {5});
  const Axis i("i", 3), t("t", 5), k("k", 5), other("o", 2);
  const auto add = [&](Expr before) { return before + x(i, t); };
  CHECK_THROWS_WITH(scan("S", {i, t}, other, x(i, t), add),
                    Contains("scan \"S\": \"o\", along which it runs, is not one of its axes"));
  CHECK_THROWS_WITH(scan("", {i, t}, t, x(i, t), add), Contains("needs a name"));
  CHECK_THROWS_WITH(scan("S", {i, t}, t, cast(i64, x(i, t)), [](Expr b) { return cast(i32, b); }),
                    Contains("the step gives i32, the first element is i64"));
  CHECK_THROWS_WITH(scan("S", {i, t}, t, x(i, t), [](Expr) { return Expr(); }),
                    Contains("the step gives an undefined value"));
  CHECK_THROWS_WITH(scan("S", {i, t}, t, x(i, t), [&](Expr b) { return sum(b * w(k), k); }),
                    Contains("the step reduces over the element before"));
  CHECK_THROWS_WITH(scan("S", {i, t}, t, x(i, k), add), Contains("variable \"k\" is neither"));
  CHECK_THROWS_WITH(scan_tuple("S", {i, t}, t, {x(i, t), x(i, t)},
                               [](const auto& b) { return std::vector{b[0]}; }),
                    Contains("the step gives 1 elements, 2 first ones are given"));
  CHECK_NOTHROW(scan("S", {i, t}, t, x(i, t), [&](Expr b) { return b + x(i, t - 1); }));
}

TEST_CASE("wrong scatters are refused where they are written") {
  const Tensor x = input("x", i32, {9}), f = input("f", f32, {9});
  const Axis b("b", 7), i("i", 9), j("j", 9);
  const Expr none = int_imm(0, i32);
  CHECK_THROWS_WITH(scatter("H", {b}, none, {i}, {x(i), x(i)}, 1),
                    Contains("scatter \"H\": 2 indices for 1 axes"));
  CHECK_THROWS_WITH(scatter("H", {b}, none, {i}, {f(i)}, 1), Contains("an index is an integer"));
  CHECK_THROWS_WITH(scatter("H", {b}, cast(i32, b), {i}, {x(i)}, f(i)),
                    Contains("the start is i32, the combiner works on f32"));
  CHECK_THROWS_WITH(scatter("H", {b}, none, {i}, {x(j)}, 1), Contains("variable \"j\" is neither"));
  CHECK_THROWS_WITH(scatter("H", {b}, none, {i}, {x(i)}, Expr()), Contains("value is undefined"));
  CHECK_THROWS_WITH(scatter("H", {b}, Expr(), {i}, {x(i)}, x(i)), Contains("value is undefined"));
  const auto later = combiner(
      "later", none, [](Expr, Expr r) { return r; }, Commutes::no);
  CHECK_THROWS_WITH(scatter("H", {b}, none, {i}, {x(i)}, x(i), later),
                    Contains("a point that is dropped is joined as the identity (0:i32)"));
  CHECK_NOTHROW(scatter("H", {b}, none, {i}, {floor_mod(x(i), int_imm(7, i32))}, x(i), later));
}
