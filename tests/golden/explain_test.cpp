#include <catch2/catch.hpp>

#include <tenon/support/error.h>

#include "golden.h"
#include "tests/unit/schedule/schedule_formulas.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

/// A product in blocks of k, its tile in a register copy, B's slab packed.
Schedule blocked_product() {
  const Matmul m(16, 64, 64);
  Schedule s(m.program(), wide_target());
  auto [ko, ki] = s.split(m.k, 16);
  auto [io, ii] = s.split(m.i, 4);
  s.reorder({ko, io, ki, ii, "j"});
  s.cache_read(m.B, ko);
  s.cache_write(io, {.scope = Scope::reg});
  return s;
}

/// A gather, whose rows are not known, after a padded map.
Schedule gathered() {
  const Tensor x = input("X", f32, {10, 4}), at = input("at", i32, {6});
  const Axis i("i", 6), j("j", 4);
  return {make_program("gather", {compute("G", {i, j}, x(cast(i64, at(i)), j))}), wide_target()};
}

}  // namespace

TEST_CASE("explain says what one iteration of a loop reads and writes") {
  const Schedule s = blocked_product();
  std::string text = s.print() + "\n";
  for (const char* loop : {"C:k.o", "C:i.o", "C:j", "C.store:i", "B.cache:k"})
    text += s.explain(loop) + "\n";
  check_golden("schedule/explain.txt", text + gathered().explain("i"));
}

TEST_CASE("explain of a loop that does not exist says which there are") {
  const Schedule s = blocked_product();
  CHECK_THROWS_WITH(s.explain("C:q"), Contains("stage \"C\" has no loop \"q\""));
  CHECK_THROWS_WITH(s.explain("Q:i"), Contains("there is no stage \"Q\""));
  const Tensor x = input("X", f32, {4});
  const Axis a("a", 4), b("b", 4);
  const Tensor p = compute("P", {a}, x(a));
  const Schedule two(make_program("two", {p, compute("Q", {b}, p(b))}), wide_target());
  CHECK_THROWS_WITH(two.explain("a"), Contains("there are several stages"));
}

TEST_CASE("diff shows what steps changed, line by line, both ways") {
  const Matmul m(16, 64, 64);
  Schedule s(m.program(), wide_target());
  s.split(m.k, 16);
  s.reorder({"k.o", "i"});
  s.decompose_reduction("k.o");
  check_golden("schedule/diff.txt",
               s.diff(0, 1) + "\n" + s.diff(1, 3) + "\n" + s.diff(3, 2) + "\n" + s.diff(2, 2));
  CHECK_THROWS_WITH(s.diff(0, 4), Contains("there is no step 4; the trace has 3"));
}
