#include <tenon/schedule/schedule.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "formulas.h"
#include "interp/interp.h"

// Scheduled programs: machine code beside the interpreter on the unscheduled loop tree, for every
// level of target, with register tiles, packing, partial tiles and threads.

using namespace tenon;
using namespace tenon::test;

namespace {

/// Runs `scheduled` as machine code and `plain` in the interpreter on equal inputs. Floats may
/// differ by `steps` roundings of the largest magnitude of an output.
void compare(const Program& plain, const Program& scheduled, const Target& target, double steps,
             GuardAt at) {
  const GuardedArguments want(plain, GuardAt::end, 5), got(scheduled, at, 5);
  std::vector<HostBuffer> buffers;
  for (const Array& a : want.all) buffers.push_back({a.raw()});
  InterpOptions options;
  options.race_mode = false;
  interpret(plain, buffers, options);
  static ThreadPool pool(2);
  compile(scheduled, target).run(got.all, pool);
  for (size_t o = want.outputs_from; o < want.all.size(); ++o) {
    const auto w = want.all[o].to_doubles(), g = got.all[o].to_doubles();
    double largest = 0;
    for (double v : w) largest = std::max(largest, std::fabs(v));
    for (size_t k = 0; k < w.size(); ++k) {
      INFO(target.name << " output " << o << " element " << k << "\n" << print(scheduled));
      REQUIRE(std::fabs(w[k] - g[k]) <= steps * 6e-8 * largest);
    }
  }
}

struct Matrix {
  int64_t m, n, k;
  DType dtype = f32;
};

Program matmul(const Matrix& x) {
  const Tensor a = input("A", x.dtype, {x.m, x.k}), b = input("B", x.dtype, {x.k, x.n});
  const Axis i("i", Expr(x.m)), j("j", Expr(x.n)), k("k", Expr(x.k));
  return make_program("p", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))});
}

/// A register tile of `rows` by `vectors` whole vectors over all of k, B packed per column of
/// tiles.
Program tiled(const Program& plain, const Target& target, int64_t rows, int64_t vectors,
              bool pack) {
  const int64_t columns = vectors * target.lanes(plain.params[0].buffer->dtype);
  Schedule s(plain, target);
  s.split("i", rows);
  s.split("j", columns);
  s.reorder({"j.o", "i.o", "k", "i.i", "j.i"});
  if (pack) s.cache_read("B", "j.o");
  s.cache_write("i.o", {.scope = Scope::reg});
  s["C"].vectorize("j.i", {.tail = Tail::mask}).unroll("i.i");
  s["C.store"].vectorize("j", {.tail = Tail::mask}).unroll("i");
  if (pack) s["B.cache"].vectorize("j", {.tail = Tail::mask});
  s["C"].parallel("j.o");
  return s.program();
}

}  // namespace

TEST_CASE("register tiles of a matrix product agree with the interpreter on odd shapes") {
  for (const Target& target : runnable_targets()) {
    for (const Matrix& x :
         {Matrix{1, 1, 1}, Matrix{7, 17, 37}, Matrix{37, 130, 7}, Matrix{13, 64, 17},
          Matrix{17, 37, 0}, Matrix{0, 7, 3}, Matrix{12, 37, 17, f64}, Matrix{7, 37, 17, i32},
          Matrix{7, 37, 17, i8}}) {
      const Program plain = matmul(x);
      for (bool pack : {false, true}) {
        const double steps = is_float(x.dtype) ? static_cast<double>(x.k + 1) : 0;
        compare(plain, tiled(plain, target, 6, 2, pack), target, steps, GuardAt::end);
        compare(plain, tiled(plain, target, 1, 1, pack), target, steps, GuardAt::start);
      }
    }
  }
}

TEST_CASE("a vectorised stencil with padding agrees with the interpreter") {
  for (const Target& target : runnable_targets()) {
    for (int64_t w : {1, 7, 17, 37, 130}) {
      const int64_t h = 7;
      const Tensor x = input("X", f32, {h, w});
      const Axis i("i", Expr(h)), j("j", Expr(w)), p("p", Expr(3)), q("q", Expr(3));
      const Expr row = i + p - 1, column = j + q - 1;
      const Expr inside = row >= 0 && row < h && column >= 0 && column < w;
      const Tensor y =
          compute("Y", {i, j}, max(sum(select(inside, x(row, column), float_imm(0)), {p, q}), 0.0));
      const Program plain = make_program("p", {y});
      Schedule s(plain, target);
      const std::string stage = s.stages()[0];
      s[stage].reorder({"i", "p", "q", "j"});
      s[stage].vectorize("j", {.tail = Tail::mask}).parallel("i");
      compare(plain, s.program(), target, 10, GuardAt::end);
      compare(plain, s.program(), target, 10, GuardAt::start);
    }
  }
}

TEST_CASE("elements of a register buffer that a guard leaves out need not exist") {
  const Tensor x = input("X", i64, {9, 5});
  const Axis i("i", 10), j("j", 6), y("y", 9), z("z", 5);
  const Expr inside = Expr(i) >= 1 && Expr(i) < 10 && Expr(j) >= 1 && Expr(j) < 6;
  const Tensor p = compute("P", {i, j}, select(inside, x(i - 1, j - 1), int_imm(0)));
  const Tensor c = compute("C", {y, z}, p(y, z) + p(y + 1, z) * p(y, z + 1));
  const Program plain = make_program("p", {c});
  for (const Target& target : runnable_targets()) {
    Schedule s(plain, target);
    s["C"].split("y", 8);
    s["P"].compute_at("C", "y.i");
    s["P"].cache_read("X", "i");
    s.set_scope("X.cache", Scope::reg);
    compare(plain, s.program(), target, 0, GuardAt::end);
    compare(plain, s.program(), target, 0, GuardAt::start);
  }
}

TEST_CASE("reductions in the lanes of registers agree with the interpreter, tails included") {
  for (const Target& target : runnable_targets()) {
    for (DType t : {f32, f64, i32}) {
      for (int64_t n : {1, 5, 16, 37, 131}) {
        const Tensor x = input("X", t, {3, n});
        const Axis i("i", 3), k("k", Expr(n)), m("m", Expr(n));
        const Tensor s = compute("S", {i}, sum(x(i, k) * x(i, k), k));
        const Tensor top = compute("T", {i}, reduce_max(-x(i, m) - imm(5, t), {m}));
        const Program plain = make_program("p", {s, top});
        Schedule scheduled(plain, target);
        for (const char* stage : {"S", "T"}) {
          const std::string loop = stage[0] == 'S' ? "k" : "m";
          scheduled[stage].split(loop, target.lanes(t));
          const std::string parts = scheduled[stage].rfactor(loop + ".i");
          scheduled[parts].compute_at(stage, "i");
          scheduled.set_scope(parts, Scope::reg);
          scheduled[parts].vectorize(loop + ".i");
          scheduled[stage].vectorize(loop + ".i");
        }
        const double steps = is_float(t) ? static_cast<double>(n + 2) : 0;
        compare(plain, scheduled.program(), target, steps, GuardAt::end);
        compare(plain, scheduled.program(), target, steps, GuardAt::start);
      }
    }
  }
}

TEST_CASE("a reduction loop vectorized as it stands agrees with the interpreter") {
  for (const Target& target : runnable_targets()) {
    for (int64_t n : {1, 7, 40, 130}) {
      const Tensor x = input("X", i32, {3, n});
      const Axis i("i", 3), k("k", Expr(n)), m("m", Expr(n)), y("y", 3);
      const Tensor low = compute("L", {i}, reduce_min(x(i, k) + int_imm(9, i32), {k}));
      const Tensor count = compute("N", {y}, sum(int_imm(1, i32) + x(y, m) * int_imm(0, i32), m));
      const Program plain = make_program("p", {low, count});
      Schedule s(plain, target);
      s["L"].vectorize("k", {.tail = Tail::mask});
      s["N"].split("m", 4);
      s["N"].vectorize("m.i", {.tail = Tail::mask});
      compare(plain, s.program(), target, 0, GuardAt::end);
    }
  }
}

TEST_CASE("a last tile that is shifted inward stays inside the arrays") {
  for (const Target& target : runnable_targets()) {
    for (int64_t n : {16, 17, 37, 130}) {
      const Tensor x = input("X", f32, {3, n}), v = input("V", f32, {n});
      const Axis i("i", 3), j("j", Expr(n));
      const Program plain = make_program("p", {compute("Y", {i, j}, max(x(i, j) + v(j), 0.0))});
      Schedule s(plain, target);
      s.split("j", 16, {.tail = Tail::shift_inward});
      s.vectorize("j.i", {.tail = Tail::mask}).parallel("i");
      compare(plain, s.program(), target, 0, GuardAt::end);
      compare(plain, s.program(), target, 0, GuardAt::start);
    }
  }
}
