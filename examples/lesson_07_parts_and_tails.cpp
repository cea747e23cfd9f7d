// Lesson 7: parts of a reduction, and tails.
//
// The iterations of a reduction meet in one element, so they run neither in parallel nor as vectors
// until rfactor gives each part an element of its own. Tails decide what becomes of the last tile.
#include <tenon/tenon.h>

#include <cmath>
#include <cstdio>

using namespace tenon;

int main() {
  const int rows = 48, n = 1003;  // 1003 is a multiple of no vector
  const Target host = Target::host();
  const int lanes = host.lanes(f32);
  Tensor X = input("X", f32, {rows, n});
  Axis i("i", rows), k("k", n), y("y", rows), x("x", n);
  Tensor S = compute("S", {i}, sum(X(i, k), k));
  Tensor D = compute("D", {y, x}, X(y, x) - S(y) * Expr(1.0 / n));
  const Program plain = make_program("centred", {D});

  Schedule s(plain, host);
  try {
    s["S"].parallel("k");
  } catch (const ScheduleError& e) {
    std::printf("a reduction loop is not parallel:\n%s\n\n", e.what());
  }

  // One partial sum per lane: they start from 0, in registers, and the rest of the row is a mask.
  s["S"].split(k, lanes);
  const std::string parts = s["S"].rfactor("k.i");
  s[parts].compute_at("S", "i");
  s.set_scope(parts, Scope::reg);
  s[parts].vectorize("k.i");
  // The stage itself combines the parts, all lanes by one operation.
  s["S"].vectorize("k.i").parallel("i");
  // A map may compute some elements twice: its last vector ends with the row, without a mask.
  s["D"].split(x, lanes, {.tail = Tail::shift_inward});
  s["D"].vectorize("x.i").parallel("y");
  std::printf("%s\n", s.print().c_str());

  Kernel slow = compile(plain, host), fast = compile(s.program(), host);
  Array a = random(f32, {rows, n}, 1), d0 = zeros(f32, {rows, n}), d1 = zeros(f32, {rows, n});
  slow(a, d0);
  fast(a, d1);
  double worst = 0;
  for (int e = 0; e < rows * n; ++e)
    worst = std::fmax(worst, std::fabs(d0.data<float>()[e] - d1.data<float>()[e]));
  // rfactor adds in another order: results may differ by rounding, and by nothing else.
  std::printf("largest difference from the plain loop nest: %g\n", worst);
  return worst < 1e-4 ? 0 : 1;
}
