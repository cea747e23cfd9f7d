#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>

#include "lower/lower.h"
#include "run.h"

// Every way to break the rules of register buffers is refused with the buffer and the access.

using namespace tenon;

namespace {

Target four_lanes() {
  Target t;
  t.name = "test/128";
  t.vector_bits = 128;
  t.cores = 2;
  return t;
}

/// P[a] = X[a] + 1 in registers, C[i] = P[at(i)]; both vectorised where asked.
Schedule line(int64_t n, const std::function<Expr(const Expr&)>& at, bool vectors = true) {
  const Tensor x = input("X", i32, {2 * n + 4});
  const Axis a("a", 2 * n + 4), i("i", n);
  const Tensor p = compute("P", {a}, x(a) + int_imm(1, i32));
  const Tensor c = compute("C", {i}, p(at(i)));
  Schedule s(make_program("line", {c}), four_lanes());
  s.set_scope("P", Scope::reg);
  if (vectors) {
    s["P"].vectorize("a", {.tail = Tail::mask});
    s["C"].vectorize("i", {.tail = Tail::mask});
  }
  return s;
}

std::string refusal(const Schedule& s) {
  INFO(s.print());
  try {
    lower(s.program(), four_lanes());
  } catch (const UserError& e) {
    return e.what();
  }
  FAIL_CHECK("lower accepts it");
  return "";
}

}  // namespace

TEST_CASE("whole vectors of a register buffer are accepted") {
  check_every_pass(line(8, [](const Expr& i) { return i; }).program(), four_lanes());
  check_every_pass(line(8, [](const Expr& i) { return i + 4; }).program(), four_lanes());
  check_every_pass(line(7, [](const Expr& i) { return i; }).program(), four_lanes());
  check_every_pass(line(
                       7, [](const Expr& i) { return i * 2 + 1; }, false)
                       .program(),
                   four_lanes());
}

TEST_CASE("misaligned and strided vectors of a register buffer are refused") {
  CHECK(refusal(line(8, [](const Expr& i) { return i + 1; })) ==
        "lower error in line: register buffer P is read at [ramp(i.v * 4 + 1, 1, 4)] for C, which "
        "does not start at a multiple of 4\n  try: the same split of the vectorised axis in every "
        "stage that uses it, or global scope");
  const auto strided = refusal(line(8, [](const Expr& i) { return i * 2; }));
  CHECK_THAT(strided, Catch::Contains("register buffer P is read at [ramp(") &&
                          Catch::Contains("whose lanes are no neighbours") &&
                          Catch::Contains("try: vectorize an axis"));
  const auto backwards = refusal(line(8, [](const Expr& i) { return int_imm(7) - i; }));
  CHECK_THAT(backwards, Catch::Contains("whose lanes are no neighbours"));
  const auto uneven = refusal(line(8, [](const Expr& i) { return floor_div(i, 3); }));
  CHECK_THAT(uneven, Catch::Contains("whose lanes are no neighbours"));
}

TEST_CASE("a register buffer by lanes in one stage and by elements in another is refused") {
  Schedule s = line(
      8, [](const Expr& i) { return i; }, false);
  s["C"].vectorize("i");
  CHECK_THAT(refusal(s), Catch::Contains("register buffer P is accessed by 1 and by 4 elements at "
                                         "a time"));
}

TEST_CASE("a register buffer indexed by data or a loop that cannot be unrolled is refused") {
  const Tensor idx = input("idx", i32, {5}), x = input("X", i32, {9});
  const Axis a("a", 9), i("i", 5);
  const Tensor p = compute("P", {a}, x(a) + int_imm(1, i32));
  Schedule data(make_program("gather", {compute("C", {i}, p(cast(i64, idx(i))))}), four_lanes());
  data.set_scope("P", Scope::reg);
  CHECK_THAT(refusal(data), Catch::Contains("register buffer P is read at [i64(idx[i])] for C, an "
                                            "element that data decides"));
  Schedule threads = line(
      8, [](const Expr& e) { return e; }, false);
  threads["C"].parallel("i");
  CHECK_THAT(refusal(threads), Catch::Contains("loop \"i\" picks elements of a register buffer") &&
                                   Catch::Contains("it is parallel"));
}

TEST_CASE("a register buffer that threads would share is refused") {
  const Tensor x = input("X", i32, {6, 4});
  const Axis i("i", 6), k("k", 4), y("y", 6), z("z", 4);
  const Tensor r = compute("R", {i}, sum(x(i, k), k));
  const Tensor d = compute("D", {y, z}, x(y, z) - r(y));
  Schedule s(make_program("rows", {d}), four_lanes());
  s.set_scope("R", Scope::reg);
  s["D"].unroll("y").parallel("z");
  CHECK_THAT(refusal(s),
             Catch::Contains("register buffer R is read at [y] for D, inside parallel loop \"z\" "
                             "and allocated outside it") &&
                 Catch::Contains("try: allocate it inside that loop (compute_at)"));
}

TEST_CASE("loads of lanes that no store wrote have the tail's mask") {
  // 17 = 2*8 + 1: the guard of the split leaves lanes 17..19 of P unwritten.
  const Tensor x = input("X", i32, {17});
  const Axis a("a", 17), i("i", 17);
  const Tensor p = compute("P", {a}, x(a) + int_imm(1, i32));
  const Tensor c = compute("C", {i}, p(i) * int_imm(3, i32));
  Schedule s(make_program("padded", {c}), four_lanes());
  s.set_scope("P", Scope::reg);
  s["P"].split("a", 8);
  s["P"].reorder({"a.i", "a.o"});
  s["P"].vectorize("a.i", {.tail = Tail::mask});
  s["C"].vectorize("i", {.tail = Tail::mask});
  check_every_pass(s.program(), four_lanes());
  CHECK_THAT(print(lower(s.program(), four_lanes())),
             Catch::Contains("P[ramp(16, 1, 4); ramp(0, 1, 4)<broadcast(1, 4)]"));
}
