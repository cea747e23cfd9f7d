#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/unit/schedule/schedule_formulas.h"

using namespace tenon;

// What a trace prints as C++ is C++ that makes the trace: the statements are compiled and run here, and
// the trace that they make prints as they are written.

#define SAME_AS_PRINTED(...)          \
  do {                                \
    __VA_ARGS__                       \
    CHECK(printed(s) == #__VA_ARGS__); \
  } while (false)

namespace {

std::string printed(const Schedule& s) {
  std::string text = to_cpp(s.trace());
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Schedule product(const Target& target = wide_target()) {
  const Matmul m(20, 64, 48);
  const Axis y("y", 20), x("x", 64);
  return {make_program("relu", {compute("D", {y, x}, max(m.C(y, x), Expr(0.0)))}), target};
}

Schedule blur() {
  const Tensor x = input("X", f32, {34});
  const Axis a("a", 34), i("i", 32);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  return {make_program("blur", {compute("C", {i}, p(i) + p(Expr(i) + int_imm(2)))}), wide_target()};
}

}  // namespace

// clang-format off
TEST_CASE("loops, caches and marks print as the C++ that makes them") {
  Schedule s = product();
  SAME_AS_PRINTED(
      s["C"].split("k", 16);
      s["C"].tile("i", "j", 5, 32);
      s["C"].reorder({"k.o", "i.o", "j.o", "k.i", "i.i", "j.i"});
      s["C"].cache_read("B", "k.o", {.layout = {{1, 32, 0}, {0, 1, 0}, {1, 1, 32}}});
      s["C"].cache_write("j.o", {.scope = Scope::reg});
      s["D"].reverse_compute_at("C", "j.o");
      s["C"].parallel("i.o");
      s["C"].unroll("i.i");
      s["C"].vectorize("j.i");
      s["C.load"].vectorize("j", {.tail = Tail::mask});
      s.set_scope("B.cache", Scope::global););
}

TEST_CASE("moves of stages print as the C++ that makes them") {
  Schedule s = blur();
  SAME_AS_PRINTED(
      s["C"].split("i", 5);
      s["C"].partition("i.o");
      s["P"].compute_at("C", "i.o"););
}

TEST_CASE("inlining prints as the C++ that does it") {
  Schedule s = blur();
  SAME_AS_PRINTED(s["P"].compute_inline(););
}

TEST_CASE("steps on reductions print as the C++ that makes them") {
  Schedule s = product();
  SAME_AS_PRINTED(
      s["C"].fuse("i", "j");
      s["C"].split("k", 6, {.tail = Tail::exact});
      s["C"].rfactor("k.i", {.dim = 0});
      s["C"].decompose_reduction("i_j"););
}

TEST_CASE("binding prints as the C++ that does it") {
  Schedule s = product(Target::generic_gpu());
  SAME_AS_PRINTED(
      s["C"].bind("i", ThreadAxis::block_x);
      s["C"].bind("j", ThreadAxis::thread_x););
}

TEST_CASE("tensorizing prints as the C++ that does it") {
  const Tensor a = input("A", u8, {6, 8}), b = input("B", i8, {8, 40});
  const Axis i("i", 6), j("j", 40), k("k", 8);
  Schedule s(make_program("bytes", {compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k))}),
             wide_target());
  SAME_AS_PRINTED(
      s["C"].split("j", 16);
      s["C"].split("k", 4);
      s["C"].reorder({"j.o", "k.o", "i", "j.i", "k.i"});
      s["C"].cache_read("B", "j.o", {.layout = {{1, 16, 0}, {0, 4, 0}, {1, 1, 16}, {0, 1, 4}}});
      s["C"].tensorize("j.i", "dot4_u8i8_i32"););
}
// clang-format on
