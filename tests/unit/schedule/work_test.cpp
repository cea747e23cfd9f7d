#include <tenon/schedule/schedule.h>
#include <tenon/schedule/work.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>

using namespace tenon;

namespace {

Target machine(int cores) {
  Target t = Target::parse("x86-64/avx512");
  t.cores = cores;
  return t;
}

Program product(int64_t n) {
  const Tensor a = input("A", f32, {n, n}), b = input("B", f32, {n, n});
  const Axis i("i", n), j("j", n), k("k", n);
  return make_program("product", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))});
}

Program map(int64_t n, bool function) {
  const Tensor x = input("X", f32, {64, n / 64});
  const Axis i("i", 64), j("j", n / 64);
  return make_program("map", {compute("C", {i, j}, function ? exp(x(i, j)) : x(i, j) + 1.0f)});
}

Program transpose(int64_t n) {
  const Tensor x = input("X", f32, {n, n});
  const Axis i("i", n), j("j", n);
  return make_program("transpose", {compute("C", {i, j}, x(j, i))});
}

}  // namespace

TEST_CASE("cycles of a nest count arithmetic in vectors, bytes, functions and gathers") {
  const Target target = machine(1);
  // Two multiply-adds of 16 lanes a cycle.
  CHECK(nest_cycles(product(64), "C", target) == 64 * 64 * 64 / 32.0);
  // Four bytes in and four out at 24 bytes a cycle.
  CHECK(nest_cycles(map(1 << 14, false), "C", target) == Approx((1 << 14) * 8 / 24.0));
  CHECK(nest_cycles(map(1 << 14, true), "C", target) == (1 << 14) * 12 / 32.0);
  CHECK(nest_cycles(transpose(64), "C", target) == 64 * 64);
}

TEST_CASE("tiny work stays on the caller's thread, and all work on one core") {
  for (int64_t n : {8, 16, 32}) CHECK(!worth_threads(product(n), "C", n, machine(2)));
  for (int64_t n : {128, 256, 1024}) {
    CHECK(worth_threads(product(n), "C", n, machine(2)));
    CHECK(!worth_threads(product(n), "C", n, machine(1)));
    CHECK(!worth_threads(product(n), "C", 1, machine(2)));
  }
  CHECK(!worth_threads(map(1 << 12, false), "C", 64, machine(2)));
  CHECK(worth_threads(map(1 << 16, false), "C", 64, machine(2)));
  CHECK(!worth_threads(map(1 << 12, true), "C", 64, machine(2)));
  CHECK(worth_threads(map(1 << 15, true), "C", 64, machine(2)));
}

TEST_CASE("threads count by the pieces that the slowest of them gets") {
  // Three pieces on two cores save a third: of 8192 cycles that is less than a fork-join.
  const Program p = product(68);
  CHECK(nest_cycles(p, "C", machine(2)) / 2 > kForkCycles);
  CHECK(nest_cycles(p, "C", machine(2)) / 3 < kForkCycles);
  CHECK(worth_threads(p, "C", 2, machine(2)));
  CHECK(!worth_threads(p, "C", 3, machine(2)));
}

TEST_CASE("a nest has the work of all stages inside its outermost loop") {
  const Tensor x = input("X", f32, {64, 64});
  const Axis i("i", 64), j("j", 64), k("k", 64), i2("i2", 64);
  const Tensor e = compute("E", {i, j}, exp(x(i, j)));
  Schedule s(make_program("p", {compute("S", {i2}, sum(e(i2, k), k))}), machine(2));
  const double apart = nest_cycles(s.program(), "S", machine(2));
  const double exps = nest_cycles(s.program(), "E", machine(2));
  s["E"].compute_at("S", "i2");
  CHECK(nest_cycles(s.program(), "S", machine(2)) == Approx(apart + exps));
}
