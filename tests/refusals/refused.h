#pragma once
#include <catch2/catch.hpp>

#include <tenon/ir/ops.h>
#include <tenon/support/error.h>

#include "tests/unit/schedule/schedule_formulas.h"

namespace tenon {

/// C = A * B.
inline Schedule matmul(int64_t m = 12, int64_t n = 20, int64_t depth = 6) {
  return {Matmul(m, n, depth).program(), wide_target()};
}

/// P = 2*X, C = P shifted, D = C + 1, all over 32 points (P over 34).
inline Schedule chain() {
  const Tensor x = input("X", f32, {34});
  const Axis a("a", 34), i("i", 32), l("l", 32);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  const Tensor c = compute("C", {i}, p(i) + p(Expr(i) + int_imm(2)));
  const Tensor d = compute("D", {l}, c(l) + Expr(1.0));
  return {make_program("chain", {d}), wide_target()};
}

/// `step` throws a ScheduleError whose text contains all of `telling`.
template <class F>
void refused(F&& step, const std::vector<std::string>& telling) {
  try {
    step();
  } catch (const ScheduleError& e) {
    for (const std::string& text : telling) CHECK_THAT(e.what(), Catch::Contains(text));
    return;
  }
  FAIL("not refused; expected: " << telling[0]);
}

}  // namespace tenon
