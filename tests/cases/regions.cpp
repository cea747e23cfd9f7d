#include <tenon/ir/ops.h>

#include <catch2/catch.hpp>

#include "case_harness.h"

// Producer regions (compute_at).

using namespace tenon;
using namespace tenon::cases;

namespace {

/// The box that a producer shrinks to under these steps, on the host's target.
void check_box(const Work& work, const std::string& label, const std::string& buffer,
               const Steps& steps, const Shape& want) {
  Schedule s(make_program("case", work.outputs), host_target());
  steps(s);
  const Shape box = compacted_shape(s.program(), buffer);
  std::string text;
  for (int64_t n : box) text += fmt::format("{} ", n);
  holds(box == want, "schedule", label + ", box",
        fmt::format("{} holds {}\n{}", buffer, text, s.print()));
}

}  // namespace

TEST_CASE("D10 stencil chain") {
  const auto square = [](int64_t n) { return n * n; };
  const Array want =
      table<int32_t>({30}, [&](int64_t n) { return square(n) + square(n + 1) + square(n + 2); });
  REQUIRE(want.data<int32_t>()[0] == 5);
  REQUIRE(want.data<int32_t>()[29] == 2702);
  const Steps at_tile = [](Schedule& s) {
    s["A"].compute_at("B", s["B"].split("i", 8).outer.name);
  };
  const auto run = [&](const Tensor& a, const std::map<std::string, Array>& inputs,
                       const std::string& label) {
    const Axis i("i", 30);
    const Tensor b = compute("B", {i}, a(i) + a(Expr(i) + 1) + a(Expr(i) + 2));
    const Work work{{b}, inputs, {want}};
    check_default(work, label);
    check(work, label + ", at the tile", at_tile);
    check_box(work, label, "A", at_tile, {10});
    check(work, label + ", at the tile, vectorised", [&](Schedule& s) {
      at_tile(s);
      s["B"].vectorize("i.i");
      s["A"].vectorize("i", {Tail::mask});
    });
  };
  const Axis p("i", 32);
  run(compute("A", {p}, cast(i32, Expr(p) * p)), {}, "i*i");
  const Tensor x = input("X", i32, {32});  // its end is the end of a page
  run(compute("A", {p}, x(p) * x(p)), {{"X", table<int32_t>({32}, [](int64_t n) { return n; })}},
      "X*X");
}

TEST_CASE("D11 padding producer") {
  const Tensor x = input("X", f32, {10, 10}), w = input("W", f32, {3, 3});
  const Axis py("y", 12), px("x", 12);
  const Expr inside = Expr(py) >= 1 && Expr(py) <= 10 && Expr(px) >= 1 && Expr(px) <= 10;
  const Tensor p =
      compute("P", {py, px}, select(inside, x(Expr(py) - 1, Expr(px) - 1), float_imm(0)));
  const Axis y("y", 10), v("x", 10), r("r", 3), t("t", 3);
  const Tensor c = compute("C", {y, v}, sum(p(Expr(y) + r, Expr(v) + t) * w(r, t), {r, t}));
  const auto in = [](int64_t n) { return n % 17 - 8; };
  const auto tap = [](int64_t n) { return n - 4; };
  const Array want = table<float>({10, 10}, [&](int64_t n) {
    int64_t total = 0;
    for (int64_t k = 0; k < 9; ++k) {
      const int64_t a = n / 10 + k / 3 - 1, b = n % 10 + k % 3 - 1;
      if (a >= 0 && a < 10 && b >= 0 && b < 10) total += in(a * 10 + b) * tap(k);
    }
    return total;
  });
  const Work work{
      {c}, {{"X", table<float>({10, 10}, in)}, {"W", table<float>({3, 3}, tap)}}, {want}};
  const Steps at_tile = [](Schedule& s) {
    const TileLoops loops = s["C"].tile("y", "x", 4, 4);
    s["P"].compute_at("C", loops.inner_o.name);
  };
  check_default(work, "10x10");
  check(work, "P at the tile", at_tile);
  check_box(work, "P at the tile", "P", at_tile, {6, 6});
  check(work, "P at the tile, vectorised, parallel", [&](Schedule& s) {
    at_tile(s);
    s["P"].vectorize("P:x", {Tail::mask});
    s["C"].parallel("y.o");
  });
  check(work, "P inlined and peeled", [&](Schedule& s) {
    s["P"].compute_inline();
    s["C"].partition("y").partition("x");
  });
}

TEST_CASE("D12 strided consumer") {
  const auto run = [](const Tensor& a, const std::map<std::string, Array>& inputs,
                      const std::string& label) {
    const Axis i("i", 23);
    const Tensor b = compute("B", {i}, a(Expr(i) * 2) + a(Expr(i) * 2 + 1));
    const Work work{{b}, inputs, {table<int32_t>({23}, [](int64_t n) {
                      return 2 * n * 2 * n + (2 * n + 1) * (2 * n + 1);
                    })}};
    const Steps at_tile = [](Schedule& s) {
      s["A"].compute_at("B", s["B"].split("i", 5).outer.name);
    };
    check_default(work, label);
    check(work, label + ", at the tile", at_tile);
    check_box(work, label, "A", at_tile, {10});
  };
  const Axis p("p", 46);
  run(compute("A", {p}, cast(i32, Expr(p) * p)), {}, "i*i");
  const Tensor x = input("X", i32, {46});
  run(compute("A", {p}, x(p) * x(p)), {{"X", table<int32_t>({46}, [](int64_t n) { return n; })}},
      "X*X");
}

TEST_CASE("D13 dilated taps") {
  const int64_t n = 27;
  const Tensor x = input("X", i32, {n + 6}), w = input("W", i32, {3});
  const Axis p("p", n + 6), i("i", n), k("k", 3);
  const Tensor a = compute("A", {p}, x(p) * 2);
  const Tensor c = compute("C", {i}, sum(a(Expr(i) + Expr(k) * 3) * w(k), k));
  const auto in = [](int64_t m) { return m * m % 23 - 9; };
  const Array want = table<int32_t>(
      {n}, [&](int64_t m) { return 2 * (in(m)*5 + in(m + 3) * -7 + in(m + 6) * 11); });
  const Work work{
      {c},
      {{"X", table<int32_t>({n + 6}, in)}, {"W", from_vector<int32_t>({3}, {5, -7, 11})}},
      {want}};
  const Steps at_tile = [](Schedule& s) {
    s["A"].compute_at("C", s["C"].split("i", 8).outer.name);
  };
  check_default(work, "27");
  check(work, "at the tile", at_tile);
  check_box(work, "at the tile", "A", at_tile, {14});
}

TEST_CASE("D14 two consumers with different halos") {
  const int64_t n = 21;
  const Tensor x = input("X", i32, {n + 4});
  const Axis p("p", n + 4), i("i", n), j("j", n), d("d", n);
  const Tensor a = compute("A", {p}, x(p) * 3);
  const Tensor narrow = compute("narrow", {i}, a(Expr(i) + 2));
  const Tensor wide = compute("wide", {j}, a(j) + a(Expr(j) + 4));
  const Tensor both = compute("both", {d}, narrow(d) * wide(d));
  const auto in = [](int64_t m) { return 3 * (m * 7 % 19 - 8); };
  const Work work{
      {both},
      {{"X", table<int32_t>({n + 4}, [&](int64_t m) { return m * 7 % 19 - 8; })}},
      {table<int32_t>({n}, [&](int64_t m) { return in(m + 2) * (in(m) + in(m + 4)); })}};
  check_default(work, "21");
  refused({both}, "at a loop over one consumer",
          [](Schedule& s) { s["A"].compute_at("narrow", "i"); },
          {"compute_at(A", "\"wide\" reads A"});
  refused({both}, "at a loop over the other consumer",
          [](Schedule& s) { s["A"].compute_at("wide", s["wide"].split("j", 8).outer.name); },
          {"compute_at(A", "\"narrow\" reads A"});
  const Steps common = [](Schedule& s) {
    const std::string tile = s["both"].split("d", 8).outer.name;
    s["narrow"].compute_at("both", tile);
    s["wide"].compute_at("both", tile);
    s["A"].compute_at("both", tile);
  };
  check(work, "at the loop over both", common);
  check_box(work, "at the loop over both", "A", common, {12});
}

TEST_CASE("D15 fused axis") {
  const int64_t m = 7;
  const Tensor x = input("X", i32, {m, 6});
  const Axis a("a", m), b("b", 6), i("i", m), j("j", 6);
  const Tensor a1 = compute("A1", {a, b}, x(a, b) * 2);
  const Tensor a2 = compute("A2", {i, j}, a1(i, j) + 3);
  const Work work{{a2},
                  {{"X", table<int32_t>({m, 6}, [](int64_t n) { return n; })}},
                  {table<int32_t>({m, 6}, [](int64_t n) { return 2 * n + 3; })}};
  const auto fused = [](int64_t factor) {
    return [=](Schedule& s) {
      s["A1"].compute_at("A2", s["A2"].split(s["A2"].fuse("i", "j"), factor).outer.name);
    };
  };
  check_default(work, "7x6");
  for (int64_t factor : {3, 4, 5, 6, 12, 17})
    check(work, fmt::format("fused, split by {}", factor), fused(factor));
  check_box(work, "split by 3", "A1", fused(3), {1, 3});
  check_box(work, "split by 4", "A1", fused(4), {2, 6});
}

TEST_CASE("D16 compute_at where it cannot be") {
  const Tensor x = input("X", i32, {24});
  const Axis p("p", 24), q("q", 24), i("i", 24), j("j", 24);
  const Tensor a = compute("A", {p}, x(p) + 1);
  const Tensor other = compute("other", {q}, x(q) * 2);
  const Tensor b = compute("B", {i}, a(i) * other(i));
  const Tensor c = compute("C", {j}, b(j) + a(j));
  refused({c}, "not over the consumer", [](Schedule& s) { s["A"].compute_at("other", "q"); },
          {"compute_at(A, \"other\", \"q\")", "reads A outside loop \"q\""});
  refused({c}, "an output's own loop", [](Schedule& s) { s["C"].compute_at("C", "j"); },
          {"compute_at(C", "output"});
  refused({c}, "an output at its producer", [](Schedule& s) { s["C"].compute_at("B", "i"); },
          {"compute_at(C", "output"});
  refused({c}, "its own loop", [](Schedule& s) { s["A"].compute_at("A", "p"); },
          {"compute_at(A, \"A\", \"p\")", "already round stage \"A\""});
  refused({c}, "below a consumer of a later stage",
          [](Schedule& s) { s["A"].compute_at("C", "j"); }, {"compute_at(A", "\"B\" reads A"});
  refused({c}, "no such loop", [](Schedule& s) { s["A"].compute_at("B", "z"); },
          {"compute_at", "\"z\""});
}

TEST_CASE("D17 reverse access") {
  const Tensor x = input("X", i32, {23});
  const Axis p("p", 23), i("i", 23);
  const Tensor a = compute("A", {p}, x(p) * 10);
  const Tensor b = compute("B", {i}, a(22 - Expr(i)));
  const Work work{{b},
                  {{"X", table<int32_t>({23}, [](int64_t n) { return n; })}},
                  {table<int32_t>({23}, [](int64_t n) { return 10 * (22 - n); })}};
  const Steps at_tile = [](Schedule& s) {
    s["A"].compute_at("B", s["B"].split("i", 5).outer.name);
  };
  check_default(work, "23");
  check(work, "at the tile", at_tile);
  check_box(work, "at the tile", "A", at_tile, {5});
  check(work, "at the tile, vectorised", [&](Schedule& s) {
    at_tile(s);
    s["B"].vectorize("i.i");
  });
}
