#include "rule_rows.h"
#include "schedule/tree.h"
#include "tests/unit/schedule/schedule_formulas.h"

namespace tenon {
namespace {

/// `s` with each loop of the name replaced.
Schedule with_loop(const Schedule& s, const std::string& name,
                   const std::function<Stmt(const For&)>& f) {
  Program p = s.program();
  p.body = rewrite(
      p.body,
      [&](const Stmt& x) {
        const For* loop = x.as<For>();
        return loop && loop->var.name() == name ? f(*loop) : x;
      },
      nullptr);
  return {p, s.target()};
}

}  // namespace

Schedule matmul_schedule(int64_t m, int64_t n, int64_t depth) {
  return {Matmul(m, n, depth).program(), wide_target()};
}

Schedule chain_schedule() {
  const Tensor x = input("X", f32, {34});
  const Axis a("a", 34), i("i", 32), l("l", 32);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  const Tensor c = compute("C", {i}, p(i) + p(Expr(i) + int_imm(2)));
  return {make_program("chain", {compute("D", {l}, c(l) + Expr(1.0))}), wide_target()};
}

Schedule relu_schedule(int64_t m, int64_t n, int64_t depth) {
  const Matmul mm(m, n, depth);
  const Axis y("y", m), x("x", n);
  const Tensor d = compute("D", {y, x}, max(mm.C(y, x), Expr(0.0)));
  return {make_program("relu", {d}), wide_target()};
}

Schedule rows_schedule() {
  const Tensor x = input("X", f32, {6, 9});
  const Axis y("y", 6), k("k", 9), i("i", 6), j("j", 9);
  const Tensor r = compute("R", {y}, sum(x(y, k), k));
  return {make_program("rows", {compute("D", {i, j}, x(i, j) - r(i))}), wide_target()};
}

Schedule copies_schedule() {
  const Tensor x = input("X", f32, {9});
  const Axis a("a", 9), b("b", 9);
  const Tensor p = compute("P", {a}, x(a));
  return {make_program("copies", {compute("Q", {b}, p(b))}), wide_target()};
}

Schedule with_symbolic(const Schedule& s, const std::string& loop) {
  return with_loop(s, loop, [](const For& l) {
    For out = l;
    out.extent = Var("n");
    return make_stmt(std::move(out));
  });
}

Schedule repeated(const Schedule& s, const std::string& loop) {
  return with_loop(s, loop, [](const For& l) {
    return make_stmt(make_loop(Var("t"), int_imm(4), AxisKind::spatial, make_stmt(For(l))));
  });
}

}  // namespace tenon
