#include <catch2/catch.hpp>

#include <numeric>

#include "interp/interp.h"
#include "schedule_formulas.h"

using namespace tenon;

namespace {

/// Runs the program on the arrays of its parameters, in their order.
template <class... Ts>
void run(const Schedule& s, std::vector<Ts>&... arrays) {
  verify_tree(s);
  const std::vector<HostBuffer> args = {HostBuffer{arrays.data()}...};
  interpret(s.program(), args);
}

/// out = start + sum of 0 .. n-1, by rfactor of the outer or the inner part of a split by `factor`.
Schedule sum_of(int64_t n, int64_t factor, const std::string& part) {
  const Tensor x = input("X", i32, {n});
  const Axis k("k", n);
  Schedule s(
      make_program("total", {compute("S", {}, sum(x(k), {k}, {.start = {int_imm(10, i32)}}))}),
      wide_target());
  s.split("k", factor);
  s.rfactor(part);
  return s;
}

}  // namespace

TEST_CASE("rfactor counts the init once, for parts that do not divide the domain") {
  std::vector<int32_t> x(1027), out(1);
  std::iota(x.begin(), x.end(), 0);
  Schedule outer = sum_of(1027, 257, "k.o");
  outer["S.rf"].parallel("k.o");
  run(outer, x, out);
  CHECK(out[0] == 526861);
  Schedule inner = sum_of(1027, 8, "k.i");
  inner["S.rf"].vectorize("k.i", {.tail = Tail::mask});
  out[0] = 0;
  run(inner, x, out);
  CHECK(out[0] == 526861);
}

TEST_CASE("rfactor over an empty domain leaves the init") {
  std::vector<int32_t> x(1), out(1);
  for (const char* part : {"k.o", "k.i"}) {
    out[0] = 0;
    run(sum_of(0, 4, part), x, out);
    CHECK(out[0] == 10);
  }
}

TEST_CASE("rfactor keeps the lowest index of equal values") {
  const std::vector<int32_t> values = {3, 9, 9, -1, 9};
  for (int64_t factor : {1, 2, 3, 5, 8})
    for (const char* part : {"k.o", "k.i"}) {
      const Tensor x = input("X", i32, {5});
      const Axis k("k", 5);
      Schedule s(make_program("best", compute_tuple("M", {}, arg_max(x(k), k))), wide_target());
      s.split("k", factor);
      s["M"].rfactor(part);
      s["M.rf"].parallel(part);
      std::vector<int32_t> in = values, best(1);
      std::vector<int64_t> where(1);
      run(s, in, best, where);
      CHECK(best[0] == 9);
      CHECK(where[0] == 1);
    }
}

TEST_CASE("rfactor of maxima below zero starts from the identity, not from zero") {
  const Tensor x = input("X", i32, {1003});
  const Axis k("k", 1003);
  Schedule s(make_program("top", {compute("M", {}, reduce_max(x(k), {k}))}), wide_target());
  s.split("k", 8);
  s.rfactor("k.i");
  std::vector<int32_t> in(1003), out(1);
  for (size_t n = 0; n < in.size(); ++n) in[n] = -6 - static_cast<int32_t>(n % 97);
  run(s, in, out);
  CHECK(out[0] == -6);
}

TEST_CASE("rfactor with a combiner of the user's own") {
  const Var a("a", {i32, 1}), b("b", {i32, 1});
  const auto either = std::make_shared<const Combiner>(
      Combiner{"either", {a}, {b}, {binary(BinaryOp::bit_xor, a, b)}, {int_imm(0, i32)}, true});
  const Tensor x = input("X", i32, {2, 37});
  const Axis i("i", 2), k("k", 37);
  Schedule s(make_program("fold", {compute("F", {i}, reduce(either, {x(i, k)}, {k}))}),
             wide_target());
  s.split("k", 5);
  s.rfactor("k.o", {.dim = 0});
  std::vector<int32_t> in(74), out(2), want(2);
  for (size_t n = 0; n < in.size(); ++n) {
    in[n] = static_cast<int32_t>(n * 7919 % 1009);
    want[n / 37] ^= in[n];
  }
  run(s, in, out);
  CHECK(out == want);
}

TEST_CASE("the parts of rfactor move into a loop of the reduction, and the reduction into theirs") {
  for (bool reverse : {false, true}) {
    Matmul m(6, 7, 19, i32);
    Schedule s(m.program(), wide_target());
    s.split("k", 4);
    s.rfactor("k.i");
    if (reverse)
      s["C"].reverse_compute_at("C.rf", "j");
    else
      s["C.rf"].compute_at("C", "j");
    INFO(s.print());
    std::vector<int32_t> x(6 * 19), y(19 * 7), out(6 * 7), want(6 * 7);
    std::iota(x.begin(), x.end(), -50);
    std::iota(y.begin(), y.end(), -60);
    for (size_t n = 0; n < out.size(); ++n)
      for (size_t k = 0; k < 19; ++k) want[n] += x[n / 7 * 19 + k] * y[k * 7 + n % 7];
    run(s, x, y, out);
    CHECK(out == want);
  }
}

TEST_CASE("loops of one name are told apart as they are printed") {
  Matmul m(6, 7, 19, i32);
  Schedule s(m.program(), wide_target());
  s.split("k", 4);
  s.rfactor("k.i");
  s["C.rf"].compute_at("C", "i");
  s["C.rf"].unroll("i~2");
  CHECK_THAT(s.print(),
             Catch::Contains("for i~2 in 0..1  unroll") && Catch::Contains("for i in 0..6\n"));
  CHECK_THROWS_WITH(s["C.rf"].unroll("i~3"), Catch::Contains("has no loop \"i~3\""));
}

TEST_CASE("a shifted tile writes every element and reads nothing outside") {
  for (int64_t n = 8; n <= 24; ++n) {
    const Tensor x = input("X", i32, {n});
    const Axis i("i", n);
    Schedule s(make_program("twice", {compute("C", {i}, x(i) * int_imm(2, i32))}), wide_target());
    s.split("i", 8, {.tail = Tail::shift_inward});
    s.vectorize("i.i", {.tail = Tail::mask});
    std::vector<int32_t> in(static_cast<size_t>(n)), out(in.size(), -1), want;
    std::iota(in.begin(), in.end(), 5);
    for (int32_t v : in) want.push_back(2 * v);
    run(s, in, out);
    CHECK(out == want);
  }
}

TEST_CASE("a temporary that is rounded up has its writer run over all of it") {
  const Tensor x = input("X", i32, {30});
  const Axis a("a", 34), i("i", 32);
  const Expr inside = Expr(a) >= 2 && Expr(a) < 32;
  const Tensor p = compute("P", {a}, select(inside, x(a - 2), int_imm(7, i32)));
  const Tensor q = compute("Q", {i}, p(i) + p(i + 2));
  Schedule s(make_program("stencil", {q}), wide_target());
  s["P"].split("a", 16, {.tail = Tail::pad});
  s["P"].vectorize("a.i").parallel("a.o");
  std::vector<int32_t> in(30), out(32), want(32);
  std::iota(in.begin(), in.end(), 1);
  auto at = [&](int n) { return n >= 2 && n < 32 ? in[static_cast<size_t>(n - 2)] : 7; };
  for (int n = 0; n < 32; ++n) want[static_cast<size_t>(n)] = at(n) + at(n + 2);
  run(s, in, out);
  CHECK(out == want);
}

TEST_CASE("a consumer folds into the map that feeds it, with its axes in its own order") {
  const Tensor x = input("X", i32, {3, 4}), v = input("V", i32, {4});
  const Axis i("i", 3), j("j", 4), y("y", 4), z("z", 3);
  const Tensor p = compute("P", {i, j}, x(i, j) * int_imm(2, i32));
  const Tensor d = compute("D", {y, z}, p(z, y) + v(y));
  Schedule s(make_program("turned", {d}), wide_target());
  s["P"].parallel("i");
  s["D"].reverse_compute_inline();
  CHECK(s.stages() == std::vector<std::string>{"P"});
  std::vector<int32_t> in(12), bias = {10, 20, 30, 40}, out(12), want(12);
  std::iota(in.begin(), in.end(), 0);
  for (size_t n = 0; n < 12; ++n) want[n] = 2 * in[n % 3 * 4 + n / 3] + bias[n / 3];
  run(s, in, bias, out);
  CHECK(out == want);
}

TEST_CASE("a dimension of one element that is read at 0 ties no axis") {
  // As broadcasting writes it, for a batch of one.
  const Tensor x = input("X", i32, {1, 6}), v = input("V", i32, {1, 6});
  const Axis n("n", 1), q("q", 6), m("m", 1), y("y", 6);
  const Tensor p = compute("P", {n, q}, x(n, q) * int_imm(2, i32));
  const Tensor d = compute("D", {m, y}, p(int_imm(0), y) + v(int_imm(0), y));
  for (const bool fold : {false, true}) {
    Schedule s(make_program("one", {d}), wide_target());
    s["P"].split("q", 4);
    if (fold)
      s["D"].reverse_compute_inline();
    else
      s["D"].reverse_compute_at("P", "q.o");
    std::vector<int32_t> in(6), more(6), out(6), want(6);
    std::iota(in.begin(), in.end(), 0);
    std::iota(more.begin(), more.end(), 100);
    for (size_t i = 0; i < 6; ++i) want[i] = 2 * in[i] + more[i];
    run(s, in, more, out);
    CHECK(out == want);
  }
}

TEST_CASE("a consumer that interleaves what feeds it folds into it") {
  // Elements 0, 2, 4, .. and 1, 3, .. are two rows; the last of the second is not needed.
  const Tensor x = input("X", i32, {2, 5}), v = input("V", i32, {9});
  const Axis r("r", 2), q("q", 5), y("y", 9);
  const Tensor p = compute("P", {r, q}, x(r, q) * int_imm(2, i32));
  const Tensor d = compute("D", {y}, p(floor_mod(y, int_imm(2)), floor_div(y, int_imm(2))) + v(y));
  for (const bool split : {false, true}) {
    Schedule s(make_program("turns", {d}), wide_target());
    if (split) s["P"].split("q", 3);
    s["P"].parallel("r");
    s["D"].reverse_compute_inline();
    CHECK(s.stages() == std::vector<std::string>{"P"});
    std::vector<int32_t> in(10), more(9), out(9), want(9);
    std::iota(in.begin(), in.end(), 0);
    std::iota(more.begin(), more.end(), 100);
    for (size_t n = 0; n < 9; ++n) want[n] = 2 * in[n % 2 * 5 + n / 2] + more[n];
    run(s, in, more, out);
    CHECK(out == want);
  }
}

TEST_CASE("a padded product adds zeros only") {
  const Tensor a = input("A", i32, {5, 7}), b = input("B", i32, {7, 6}),
               c = input("S", i32, {5, 6});
  const Axis i("i", 5), j("j", 6), k("k", 7);
  Schedule s(make_program("product", {compute("C", {i, j},
                                              sum(a(i, k) * b(k, j), {k}, {.start = {c(i, j)}}))}),
             wide_target());
  s.pad_einsum({4, 4, 8});
  s["C"].split("j", 4, {.tail = Tail::exact});
  s["C"].split("k", 8, {.tail = Tail::exact});
  std::vector<int32_t> x(35), y(42), start(30), out(30), want(30);
  std::iota(x.begin(), x.end(), -9);
  std::iota(y.begin(), y.end(), -20);
  std::iota(start.begin(), start.end(), 100);
  for (size_t n = 0; n < 30; ++n) {
    want[n] = start[n];
    for (size_t m = 0; m < 7; ++m) want[n] += x[n / 6 * 7 + m] * y[m * 6 + n % 6];
  }
  run(s, x, y, start, out);
  CHECK(out == want);
}
