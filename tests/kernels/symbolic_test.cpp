#include <tenon/ir/bind_symbols.h>
#include <tenon/support/rng.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>

#include "kernels/templates.h"
#include "run_kernel.h"

// The templates of operators on formulas of symbolic extents: each applies or is not offered, and
// what it makes is right at every size.

using namespace tenon;

namespace {

const SymbolRange kRange = {0, 200};

std::vector<Program> symbolic_operators() {
  const Var m = symbol("m", kRange), n = symbol("n", kRange);
  std::vector<Program> out;
  const auto add = [&](const char* name, const Tensor& t) {
    out.push_back(merge_dimensions(make_program(name, {t})));
  };
  const Axis i("i", m), j("j", 37), k("k", 17), y("y", m), x("x", 37);
  const Tensor a = input("A", f32, {m, 17}), b = input("B", f32, {17, 37});
  const Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), k));
  add("matmul", c);
  add("matmul_relu", compute("D", {y, x}, max(c(y, x), 0.0)));

  const Tensor s = input("S", f32, {m, n});
  const Axis r("r", m), q("q", n), u("u", m), v("v", n), w("w", m), z("z", n), t("t", n);
  const Tensor most = compute("M", {r}, reduce_max(s(r, q), {q}));
  const Tensor e = compute("E", {u, v}, exp(s(u, v) - most(u)));
  const Axis g("g", m);
  const Tensor total = compute("T", {g}, sum(e(g, t), t));
  add("softmax", compute("Y", {w, z}, e(w, z) / total(w)));
  add("row_sums", compute("R", {r}, sum(s(r, q), q)));
  add("map", compute("P", {u, v}, tanh(s(u, v)) * 2.0 + 1.0));
  add("transpose", compute("X", {v, u}, s(u, v)));

  const Tensor image = input("I", f32, {m, 3, 9, 9}), f = input("F", f32, {5, 3, 3, 3});
  const Axis batch("b", m), oc("oc", 5), oh("oh", 7), ow("ow", 7), ic("ic", 3), kh("kh", 3),
      kw("kw", 3);
  add("conv2d", compute("O", {batch, oc, oh, ow},
                        sum(image(batch, ic, Expr(oh) + kh, Expr(ow) + kw) * f(oc, ic, kh, kw),
                            {ic, kh, kw})));
  const Tensor rows = input("Z", f32, {4, m, n});
  const Axis p("p", 4);
  add("batched_sums", compute("B", {p, r}, sum(rows(p, r, q), q)));
  return out;
}

}  // namespace

TEST_CASE("templates of symbolic extents are right at every size") {
  Rng rng(3);
  const Target host = Target::host();
  for (const Program& program : symbolic_operators()) {
    for (const NamedTemplate& t : templates_for(program, host)) {
      const KnobSpace space = survey(t.fn, program, host);
      for (const Point& point : {space.default_point(), space.random_point(rng)}) {
        Schedule s(program, host);
        Knobs knobs(point);
        t.fn(s, knobs);
        INFO(t.name << " " << point.to_json() << "\n" << s.print());
        for (const int64_t m : {0, 1, 5, 33}) {
          const std::map<std::string, int64_t> sizes = {{"m", m}, {"n", m == 5 ? 70 : m}};
          const Program plain = bind_symbols(program, sizes);
          const auto inputs = random_inputs(plain, 3);
          CHECK(difference(run_interpreted(bind_symbols(s.program(), sizes), inputs),
                           run_interpreted(plain, inputs), 1e-4) == "");
        }
      }
    }
  }
}
