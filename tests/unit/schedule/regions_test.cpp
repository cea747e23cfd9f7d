#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "schedule_formulas.h"

using namespace tenon;

// Regions of producers; the values are checked against the interpreter in tests/equivalence. Case
// names as in the list of cases that a tensor-expression compiler must get right.

namespace {

/// C over n points reads taps of P; P is computed at C's outer loop of a split by `tile`. Returns
/// the text.
std::string computed_at(int64_t points, int64_t n, int64_t tile,
                        const std::function<Expr(const Tensor&, const Axis&)>& f) {
  const Tensor x = input("X", i32, {points});
  const Axis a("a", points), i("i", n);
  const Tensor p = compute("P", {a}, x(a) * x(a));
  Schedule s(make_program("taps", {compute("C", {i}, f(p, i))}), wide_target());
  auto [io, ii] = s["C"].split("i", tile);
  s["P"].compute_at(io);
  verify_tree(s);
  return s.print();
}

Expr at(const Axis& i, int64_t stride, int64_t offset) {
  return Expr(i) * int_imm(stride) + int_imm(offset);
}

}  // namespace

TEST_CASE("D10 a stencil's producer is computed ten elements a tile and never beyond its end") {
  const std::string text = computed_at(32, 30, 8, [](const Tensor& p, const Axis& i) {
    return p(at(i, 1, 0)) + p(at(i, 1, 1)) + p(at(i, 1, 2));
  });
  CHECK_THAT(text, Catch::Matchers::Contains("for a in 0..10\n"));
  CHECK_THAT(text, Catch::Matchers::Contains("where i.o * 8 + a < 32\n"));
}

TEST_CASE("D12 strided and D13 dilated readers") {
  const std::string strided = computed_at(
      46, 23, 5, [](const Tensor& p, const Axis& i) { return p(at(i, 2, 0)) + p(at(i, 2, 1)); });
  CHECK_THAT(strided, Catch::Matchers::Contains("for a in 0..10\n"));
  CHECK_THAT(strided, Catch::Matchers::Contains("where i.o * 10 + a < 46\n"));
  const std::string dilated = computed_at(38, 32, 8, [](const Tensor& p, const Axis& i) {
    return p(at(i, 1, 0)) + p(at(i, 1, 3)) + p(at(i, 1, 6));
  });
  CHECK_THAT(dilated, Catch::Matchers::Contains("for a in 0..14\n"));
}

TEST_CASE("D17 a reversed reader's region starts at the far end") {
  const std::string text = computed_at(
      23, 23, 5, [](const Tensor& p, const Axis& i) { return p(int_imm(22) - Expr(i)); });
  CHECK_THAT(text, Catch::Matchers::Contains("for a in 0..5\n"));
  CHECK_THAT(text, Catch::Matchers::Contains("where a - i.o * 5 + 18 >= 0"));
}

TEST_CASE("D11 a padded input is computed six by six for a tile of four by four") {
  const Tensor x = input("X", i32, {10, 10}), w = input("W", i32, {3, 3});
  const Axis h("h", 12), v("v", 12), i("i", 10), j("j", 10), a("a", 3), b("b", 3);
  const Expr inside = Expr(h) >= int_imm(1) && Expr(h) < int_imm(11) && Expr(v) >= int_imm(1) &&
                      Expr(v) < int_imm(11);
  const Tensor p = compute(
      "P", {h, v}, select(inside, x(Expr(h) - int_imm(1), Expr(v) - int_imm(1)), int_imm(0, i32)));
  const Tensor c = compute("C", {i, j}, sum(p(Expr(i) + a, Expr(j) + b) * w(a, b), {a, b}));
  Schedule s(make_program("conv", {c}), wide_target());
  const TileLoops t = s["C"].tile("i", "j", 4, 4);
  s["P"].compute_at(t.inner_o);
  verify_tree(s);
  CHECK_THAT(s.print(), Catch::Matchers::Contains("for h in 0..6\n"));
  CHECK_THAT(s.print(), Catch::Matchers::Contains("for v in 0..6\n"));
  s["P"].partition("h");  // the select of the padding depends on it
  verify_tree(s);
}

TEST_CASE("D15 a fused loop reads a part of a row, or all of it") {
  auto fused = [](int64_t factor) {
    const Tensor x = input("X", i32, {4, 6});
    const Axis a("a", 4), b("b", 6), i("i", 4), j("j", 6);
    const Tensor p = compute("P", {a, b}, x(a, b) + x(a, b));
    Schedule s(make_program("fused", {compute("C", {i, j}, p(i, j) + int_imm(3, i32))}),
               wide_target());
    auto [o, in] = s["C"].split(s["C"].fuse("i", "j"), factor);
    s["P"].compute_at(o);
    verify_tree(s);
    return s.print();
  };
  CHECK_THAT(fused(3), Catch::Matchers::Contains("for a in 0..1\n      for b in 0..3\n"));
  CHECK_THAT(fused(4), Catch::Matchers::Contains("for a in 0..2\n      for b in 0..6\n"));
}

TEST_CASE("D14 at a loop round both readers the region is the union of their halos") {
  const Tensor x = input("X", i32, {20});
  const Axis a("a", 20), i("i", 16), j("j", 16);
  const Tensor p = compute("P", {a}, x(a));
  const Tensor u = compute("U", {i}, p(Expr(i) + int_imm(2)));
  const Tensor v = compute("V", {j}, u(j) + p(j) + p(Expr(j) + int_imm(4)));
  Schedule s(make_program("halos", {v}), wide_target());
  auto [jo, ji] = s["V"].split("j", 4);
  s["U"].compute_at(jo);
  s["P"].compute_at(jo);
  verify_tree(s);
  CHECK_THAT(s.print(), Catch::Matchers::Contains("for a in 0..8\n"));
}

TEST_CASE("D04 all 24 orders of a tiled nest are accepted") {
  std::vector<std::string> loops = {"i.i", "i.o", "j.i", "j.o"};
  int orders = 0;
  do {
    const Tensor x = input("X", i32, {13, 29});
    const Axis i("i", 13), j("j", 29);
    Schedule s(make_program("map", {compute("Y", {i, j}, x(i, j) + x(i, j))}), wide_target());
    s.tile(i, j, 4, 8);
    s.apply(Reorder{"Y", loops});
    verify_tree(s);
    ++orders;
  } while (std::next_permutation(loops.begin(), loops.end()));
  CHECK(orders == 24);
}

TEST_CASE("D03 guards of splits of splits prove that iterations are apart") {
  const Tensor x = input("X", i32, {1027});
  const Axis i("i", 1027);
  Schedule s(make_program("map", {compute("Y", {i}, x(i) + x(i))}), wide_target());
  auto [o, in] = s.split(i, 16);
  auto [mid, last] = s.split(in, 5);
  s.parallel(o).unroll(last);
  s.reorder({mid, o});
  verify_tree(s);
}
