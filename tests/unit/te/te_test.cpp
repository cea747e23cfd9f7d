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

std::vector<std::string> param_names(const Program& p) {
  std::vector<std::string> names;
  for (const Param& param : p.params) names.push_back(param.buffer->name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a matmul is one stage under its own serial loops") {
  Tensor A = input("A", f32, {4, 6}), B = constant("B", f32, {6, 5});
  Axis i("i", 4), j("j", 5), k("k", 6);
  Program p = make_program("matmul", {compute("C", {i, j}, sum(A(i, k) * B(k, j), k))});
  CHECK(param_names(p) == Names{"A", "B", "C"});
  CHECK(p.params[0].role == ParamRole::input);
  CHECK(p.params[1].role == ParamRole::constant);
  CHECK(p.params[2].role == ParamRole::output);
  auto paths = stage_paths(p.body);
  REQUIRE(paths.size() == 1);
  const Stage& s = *paths[0].stage;
  REQUIRE(paths[0].loops.size() == 3);
  REQUIRE(s.axes.size() == 3);
  const Names loop_names = {"i", "j", "k"};
  for (size_t n = 0; n < 3; ++n) {
    CHECK(paths[0].loops[n]->var.name() == loop_names[n]);
    CHECK(paths[0].loops[n]->kind == (n == 2 ? AxisKind::reduce : AxisKind::spatial));
    CHECK(s.axes[n].value.as<VarRef>()->var.same_as(paths[0].loops[n]->var));
    CHECK_FALSE(s.axes[n].axis.var.same_as(paths[0].loops[n]->var));
  }
  CHECK(s.combiner->name == "sum");
  REQUIRE(s.init.size() == 1);
  CHECK(as_float(s.init[0]) == 0.0);
  CHECK(s.outputs[0].same_as(p.params[2].buffer));
  CHECK_FALSE(p.params[2].buffer->origin);
}

TEST_CASE("a given start replaces the identity") {
  Tensor A = input("A", i32, {7});
  Axis k("k", 7);
  Program p = make_program("f", {compute("s", {}, sum(A(k), {k}, {.start = {10}}))});
  auto paths = stage_paths(p.body);
  CHECK(as_int(paths[0].stage->init[0]) == 10);
  CHECK(paths[0].stage->init[0].dtype() == i32);
}

TEST_CASE("reductions inside expressions become stages over the axes they use") {
  Tensor x = input("x", f32, {3, 5});
  Axis i("i", 3), j("j", 5), k("k", 5), m("m", 5);
  Expr top = reduce_max(x(i, k), {k});
  Expr total = sum(exp(x(i, m) - top), m);
  Program p = make_program("softmax", {compute("y", {i, j}, exp(x(i, j) - top) / total)});
  CHECK(stage_names(p) == Names{"y.r0", "y.r1", "y"});
  CHECK(param_names(p) == Names{"x", "y"});
  auto paths = stage_paths(p.body);
  CHECK(paths[0].loops.size() == 2);
  CHECK(paths[0].stage->indices.size() == 1);
  CHECK(paths[1].loops.size() == 2);
  CHECK(paths[2].loops.size() == 2);
  int allocated = 0;
  walk(
      p.body, [&](const Stmt& s) { return allocated += s.as<Allocate>() != nullptr, true; },
      nullptr);
  CHECK(allocated == 2);
}

TEST_CASE("a nested reduction over an axis of the outer one has it as spatial axis") {
  Tensor x = input("x", f32, {4, 5, 6});
  Axis i("i", 4), j("j", 5), k("k", 6);
  Program p = make_program("f", {compute("y", {i}, sum(sqrt(sum(x(i, j, k), k)), j))});
  CHECK(stage_names(p) == Names{"y.r0", "y"});
  auto paths = stage_paths(p.body);
  CHECK(paths[0].stage->indices.size() == 2);
  CHECK(paths[0].loops[1]->kind == AxisKind::spatial);
  CHECK(paths[1].loops[1]->kind == AxisKind::reduce);
}

TEST_CASE("a reduction on one side of a select reads only where that side is taken") {
  Tensor x = input("x", f32, {4, 5});
  Axis i("i", 4), k("k", 5);
  Program p = make_program(
      "f", {compute("y", {i}, select(Expr(i) > 0, sum(x(Expr(i) - 1, k), k), float_imm(0)))});
  auto paths = stage_paths(p.body);
  REQUIRE(paths.size() == 2);
  CHECK(paths[0].stage->values[0].as<Select>() != nullptr);
}

TEST_CASE("tuple reductions share a stage") {
  Tensor x = input("x", f32, {4, 5});
  Axis i("i", 4), k("k", 5);
  auto best = arg_max(x(i, k), k);
  auto both_outputs = compute_tuple("a", {i}, best);
  Program p = make_program("argmax", both_outputs);
  auto paths = stage_paths(p.body);
  REQUIRE(paths.size() == 1);
  CHECK(paths[0].stage->outputs.size() == 2);
  CHECK(param_names(p) == Names{"x", "a.v0", "a.v1"});
  CHECK(p.params[2].buffer->dtype == i64);

  Program q = make_program("index", {compute("a", {i}, arg_max(x(i, k), k)[1])});
  CHECK(stage_names(q) == Names{"a.r0", "a"});
}

TEST_CASE(
    "only one element of a tuple is an output: the other is allocated, even when its handle is "
    "gone") {
  Tensor x = input("x", f32, {4, 5});
  Axis i("i", 4), k("k", 5);
  Tensor index = compute_tuple("a", {i}, arg_max(x(i, k), k))[1];
  Program p = make_program("index", {index});
  CHECK(stage_names(p) == Names{"a"});
  CHECK(param_names(p) == Names{"x", "a.v1"});
  CHECK(p.body.as<Allocate>() != nullptr);
}

TEST_CASE("equal names become unique") {
  Tensor x = input("x", f32, {4});
  Axis i("i", 4);
  Tensor a = compute("relu", {i}, max(x(i), float_imm(0)));
  Tensor b = compute("relu", {i}, max(a(i), float_imm(1)));
  Program p = make_program("f", {b});
  CHECK(stage_names(p) == Names{"relu", "relu.2"});
  Axis r("i", 3);
  Tensor y = input("y", f32, {4, 3});
  Program q = make_program("g", {compute("s", {i}, sum(y(i, r), r))});
  auto paths = stage_paths(q.body);
  CHECK(paths[0].loops[0]->var.name() == "i");
  CHECK(paths[0].loops[1]->var.name() == "i2");
}

TEST_CASE("producers come first and each once") {
  Tensor x = input("x", f32, {4}), w = input("w", f32, {4});
  Axis i("i", 4);
  Tensor a = compute("a", {i}, x(i) + 1), b = compute("b", {i}, a(i) * w(i));
  Tensor c = compute("c", {i}, a(i) + b(i));
  Program p = make_program("f", {c, b});
  CHECK(stage_names(p) == Names{"a", "b", "c"});
  CHECK(param_names(p) == Names{"x", "w", "c", "b"});
}

TEST_CASE("a chain of 1000 tensors becomes 1000 stages") {
  Axis i("i", 4);
  Tensor t = input("x", f32, {4});
  for (int n = 0; n < 1000; ++n) t = compute("t", {i}, t(i) + 1);
  CHECK(stage_paths(make_program("chain", {t}).body).size() == 1000);
}

TEST_CASE("a read that is outside for certain is refused where it is written") {
  const Tensor x = input("x", f32, {8});
  const Axis i("i", 8), j("j", 9), k("k", 3), none("none", 0);
  CHECK_THROWS_WITH(compute("y", {j}, x(j)),
                    Contains("\"x\" is read outside: index 0, j, runs over [0, 8]") &&
                        Contains("dimension 0 has extent 8"));
  CHECK_THROWS_WITH(compute("y", {i}, x(i - 1) * 2.0), Contains("runs over [-1, 6]"));
  CHECK_THROWS_WITH(compute("y", {i}, sum(x(i + k), k)), Contains("runs over [0, 9]"));
  CHECK_NOTHROW(compute("y", {i}, select(i > 0, x(i - 1), 0.0)));
  CHECK_NOTHROW(compute("y", {j}, x(min(j, 7))));
  CHECK_NOTHROW(compute("y", {i}, sum(x(i + k), {k}, {.condition = i + k < 8})));
  CHECK_NOTHROW(compute("y", {j, none}, x(j)));
}

TEST_CASE("errors of formulas say what is wrong") {
  Tensor A = input("A", f32, {4, 6});
  Axis i("i", 4), j("j", 6), k("k", 6);
  CHECK_THROWS_WITH(A(i), Contains("\"A\" has 2 dimensions and is read with 1 indices"));
  CHECK_THROWS_WITH(A(i, float_imm(1)), Contains("index 1 is f32; an index is an integer"));
  CHECK_THROWS_WITH(compute("C", {i, i}, A(i, i)), Contains("axis \"i\" is given twice"));
  CHECK_THROWS_WITH(compute("C", {i}, A(i, j)),
                    Contains("variable \"j\" is neither an axis of the result (i) nor bound"));
  CHECK_THROWS_WITH(compute("C", {i}, sum(A(i, k), k) + cast(f32, k)),
                    Contains("variable \"k\" is neither"));
  CHECK_THROWS_WITH(compute("C", {i, k}, sum(A(i, k), k)), Contains("is also reduced over"));
  Axis short_k("q", 6 - Expr(i)), short_j("r", 6 - Expr(k));
  CHECK_THROWS_WITH(compute("C", {i}, sum(A(i, short_k), short_k)),
                    Contains("the extent of axis \"q\", 6 - i, speaks of axis \"i\"") &&
                        Contains("{.condition = q < 6 - i}"));
  CHECK_THROWS_WITH(compute("C", {}, sum(A(0, k), {k, short_j})),
                    Contains("the extent of axis \"r\", 6 - k, speaks of axis \"k\""));
  CHECK_THROWS_WITH(compute("", {i}, A(i, 0)), Contains("needs a name"));
  CHECK_THROWS_WITH(compute("C", {i}, Expr()), Contains("the value is undefined"));
  CHECK_THROWS_WITH(compute("C", {Axis("i", -1)}, float_imm(1)), Contains("extent -1"));
  CHECK_THROWS_WITH(input("A", f32, {3, -2}), Contains("extents are 0 or more"));
  CHECK_THROWS_WITH(input("A", f32, {int64_t{1} << 40, 0, int64_t{1} << 20}),
                    Contains("too many points; at most 2^56"));
  Axis far("far", INT64_MAX), row("row", int64_t{1} << 30), column("column", int64_t{1} << 30);
  CHECK_THROWS_WITH(compute("B", {far}, cast(f32, far)), Contains("compute \"B\": extents of"));
  CHECK_THROWS_WITH(compute("C", {row}, sum(cast(f32, column), column)),
                    Contains("too many points"));
  CHECK_THROWS_WITH(sum(A(i, k), std::vector<Axis>{}), Contains("no axis to reduce over"));
  CHECK_THROWS_WITH(any(A(i, k), {k}), Contains("combines bools"));
  CHECK_THROWS_WITH(make_program("p", {}), Contains("no output is given"));
  CHECK_THROWS_WITH(make_program("p", {A}), Contains("output \"A\" is an input"));
  Tensor C = compute("C", {i}, A(i, 0));
  CHECK_THROWS_WITH(make_program("p", {C, C}), Contains("\"C\" is given twice"));
  CHECK_THROWS_WITH(C.extent(3), Contains("dimension 3 does not exist"));
}

TEST_CASE("dimensions that are run through together are merged") {
  auto text = [](const std::vector<Tensor>& outputs) {
    return print(merge_dimensions(make_program("p", outputs)));
  };
  Tensor x = input("x", f32, {2, 3, 4, 5}), b = input("b", f32, {3, 1, 1});
  Axis n("n", 2), c("c", 3), h("h", 4), w("w", 5);
  std::string t = text({compute("y", {n, c, h, w}, x(n, c, h, w) + b(c, 0, 0))});
  CHECK_THAT(t, Contains("y[n, c, h_w]") && Contains("x[n, c, h_w]") && Contains("b[c, 0, 0]"));
  CHECK_THAT(t, Contains("for h_w in 0..20"));
  // A whole map is one dimension; the axis of a transpose stays.
  CHECK_THAT(text({compute("y", {n, c, h, w}, exp(x(n, c, h, w)))}), Contains("x[n_c_h_w]"));
  Axis k("k", 3);
  t = text({compute("z", {n, h, w, c}, x(n, c, h, w))});
  CHECK_THAT(t, Contains("z[n, h_w, c]") && Contains("x[n, c, h_w]"));
  // A pointwise convolution and what follows it.
  Tensor v = input("v", f32, {6, 3});
  Axis o("o", 6);
  Tensor y = compute("y", {n, o, h, w}, sum(x(n, k, h, w) * v(o, k), k));
  t = text({compute("r", {n, o, h, w}, max(y(n, o, h, w), float_imm(0)))});
  CHECK_THAT(t, Contains("r[n, o, h_w]") && Contains("x[n, k, h_w]") && Contains("for k in 0..3"));
  // Reduced dimensions merge too.
  Axis rh("rh", 4), rw("rw", 5);
  t = text({compute("m", {n, c}, sum(x(n, c, rh, rw), {rh, rw}))});
  CHECK_THAT(t, Contains("m[n_c] += x[n_c, rh_rw]"));
}

TEST_CASE("dimensions that one stage treats apart are not merged") {
  auto same = [](const std::vector<Tensor>& outputs) {
    Program p = make_program("p", outputs);
    return print(merge_dimensions(p)) == print(p);
  };
  Tensor x = input("x", f32, {4, 5});
  Axis h("h", 4), w("w", 5), h3("h", 3), w4("w", 4);
  CHECK(same({compute("y", {h3, w}, x(Expr(h3) + 1, w))}));
  CHECK(same({compute("y", {h, w4}, x(h, w4))}));
  CHECK(same({compute("y", {h, w}, x(h, w) + cast(f32, w))}));
  CHECK(same({compute("y", {w, h}, x(h, w))}));
  CHECK(same({compute("y", {h, w}, x(h, w) + input("b", f32, {5})(w))}));
  Tensor a = compute("a", {h, w}, exp(x(h, w)));
  CHECK(same({compute("y", {h}, sum(a(h, w), w))}));
  // Partly apart: the first dimension only is used alone.
  Tensor z = input("z", f32, {3, 4, 5}), s = input("s", f32, {3});
  Axis c("c", 3);
  Program p = merge_dimensions(make_program("p", {compute("y", {c, h, w}, z(c, h, w) * s(c))}));
  CHECK(p.params[0].buffer->shape.size() == 2);
}
