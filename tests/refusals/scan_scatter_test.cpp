#include <catch2/catch.hpp>

#include <tenon/support/error.h>

#include "refused.h"

// What scans, scatters and folds in order refuse, and what they still allow.

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

/// S = running sums of P along t, P = 2*X, D = S + 1.
Schedule running_sums() {
  const Tensor x = input("X", i32, {8, 20});
  const Axis a("a", 8), b("b", 20), i("i", 8), t("t", 20), y("y", 8), z("z", 20);
  const Tensor p = compute("P", {a, b}, x(a, b) * 2);
  const Tensor s = scan("S", {i, t}, t, p(i, t), [&](Expr before) { return before + p(i, t); });
  return {make_program("sums", {compute("D", {y, z}, s(y, z) + 1)}), wide_target()};
}

/// Rows of X added to the rows of S that idx names, D = S + 1.
Schedule row_updates() {
  const Tensor x = input("X", i32, {20, 16}), idx = input("idx", i32, {20});
  const Axis a("a", 20), r("r", 8), c("c", 16), i("i", 20), j("j", 16), y("y", 8), z("z", 16);
  const Tensor at = compute("A", {a}, idx(a) - 1);
  const Tensor s = scatter("S", {r, c}, int_imm(0, i32), {i, j}, {at(i), j}, x(i, j));
  return {make_program("updates", {compute("D", {y, z}, s(y, z) + 1)}), wide_target()};
}

}  // namespace

TEST_CASE("the axis of a scan runs in order") {
  Schedule s = running_sums();
  const std::string why =
      "loop \"t\" runs along the scan of stage \"S\": each iteration needs the "
      "one before";
  refused([&] { s["S"].parallel("t"); }, {why, "parallel needs a spatial loop"});
  refused([&] { s["S"].vectorize("t", {Tail::mask}); }, {why, "vectorize needs a spatial loop"});
  refused([&] { s["S"].fuse("i", "t"); }, {"are of different kinds"});
  s["S"].split("t", 3);
  refused(
      [&] {
        s["S"].reorder({"t.i", "t.o"});
      },
      {"stage \"S\" is a scan; the loops along it keep their order"});
  refused([&] { s["S"].parallel("t.o"); }, {"loop \"t.o\" runs along the scan"});
  s["S"].reorder({"t.o", "t.i", "i"});
  s["S"].vectorize("i", {Tail::mask});
  s["S"].fuse("t.o", "t.i");
  s["S"].unroll("t.o_t.i");
}

TEST_CASE("a scan stays where it is") {
  const std::string why = "stage \"S\" is a scan along \"t\": an element needs the one before it";
  Schedule s = running_sums();
  refused([&] { s["S"].compute_inline(); }, {why});
  refused([&] { s["S"].compute_at(Loop{"D", "y"}); }, {why});
  refused([&] { s["S"].cache_write("i"); }, {why});
  refused([&] { s["S"].reverse_compute_at(Loop{"P", "a"}); }, {why});
  refused([&] { s["S"].decompose_reduction("i"); }, {"stage \"S\" is not a reduction"});
  refused(
      [&] {
        s["D"].reverse_compute_at(Loop{"S", "t"});
      },
      {"stage \"S\" may read an element of S that stage \"S\" writes in another iteration of "
       "\"t\""});
  s["D"].reverse_compute_at(Loop{"S", "i"});
  s["P"].compute_at(Loop{"S", "t"});
}

TEST_CASE("the sources of a scatter may meet in an element") {
  Schedule s = row_updates();
  const std::string why =
      "loop \"i\" runs over the sources of scatter \"S\": two iterations may meet in one element";
  refused([&] { s["S"].parallel("i"); }, {why, "parallel needs a spatial loop"});
  refused([&] { s["S"].vectorize("i", {Tail::mask}); }, {why});
  s["S"].reorder({"i", "j"});
  s["S"].vectorize("j");
}

TEST_CASE("a scatter stays where it is") {
  const std::string why =
      "stage \"S\" is a scatter: which elements it writes is known only when it runs";
  Schedule s = row_updates();
  refused([&] { s["S"].compute_inline(); },
          {"stage \"S\" is a scatter; only a map can be inlined"});
  refused([&] { s["S"].compute_at(Loop{"D", "y"}); }, {why});
  refused([&] { s["S"].cache_write("j"); }, {why});
  refused([&] { s["S"].reverse_compute_at(Loop{"A", "a"}); }, {why});
  refused([&] { s["S.init"].compute_inline(); }, {"another stage also writes S"});
  refused([&] { s["S.init"].compute_at(Loop{"D", "y"}); }, {"another stage also writes S"});
  refused(
      [&] {
        s["D"].reverse_compute_at(Loop{"S", "j"});
      },
      {"it cannot be proved that stage \"S\" writes exactly a box of S there"});
  refused(
      [&] {
        s["D"].reverse_compute_at(Loop{"S.init", "r"});
      },
      {"which stage \"S\" writes after the loop"});
  refused([&] { s["S"].decompose_reduction("j"); }, {"has no init of its own"});
  s["A"].compute_inline();
  s["S"].cache_read("idx", "root");
}

TEST_CASE("a fold in order keeps it") {
  const Tensor x = input("X", i32, {16, 4, 6});
  const Axis i("i", 16), j("j", 4), k("k", 6);
  const auto later = combiner(
      "later", int_imm(0, i32), [](Expr, Expr rhs) { return rhs; }, Commutes::no);
  Schedule s(make_program("p", {compute("L", {i}, reduce(later, x(i, j, k), {j, k}))}),
             wide_target());
  refused(
      [&] {
        s.reorder({"k", "j"});
      },
      {"combiner \"later\" of stage \"L\" does not commute; its reduction loops keep their "
       "order"});
  refused([&] { s.parallel("j"); }, {"loop \"j\" is a reduction loop of stage \"L\""});
  s.split("k", 4);
  refused([&] { s.reorder({"k.i", "k.o"}); }, {"does not commute"});
  s.reorder({"j", "k.o", "k.i", "i"});
  s.vectorize("i");
}
