#include "drafted.h"

using namespace tenon;

// What goes on beside other work, and what cannot stay where it is.

namespace {

Step step_of(const Schedule& s, const std::string& stage, const Target& target) {
  const NestTree tree = nests_of(s.program(), {});
  const NestStage& at = stage_of(tree, stage);
  return work_of(tree, at, sharing_of(tree, at, 1), target).full;
}

}  // namespace

TEST_CASE("What steps share is stored and read again where no register keeps it so long") {
  const Tensor x = input("X", f32, {34, 64}), f = input("F", f32, {3, 64, 16});
  const Axis w("w", 32), o("o", 16), t("t", 3), c("c", 64);
  const Program p = make_program(
      "rows", {compute("Y", {w, o}, sum(x(Expr(w) + Expr(t), c) * f(t, c, o), {t, c}))});
  const auto step = [&](int64_t steps) {
    Schedule s(p, machine());
    s.split("w", 4);
    s.split("c", steps);
    s.reorder({"w.o", "c.o", "t", "c.i", "w.i", "o"});
    s.cache_write("w.o", {.scope = Scope::reg});
    s["Y"].vectorize("o").unroll("w.i").unroll("c.i").unroll("t");
    return step_of(s, "Y", machine());
  };
  // Of c 2: a t reads 4 x 2 elements, of which the next one reads 3 x 2 again: they wait.
  CHECK(step(2).broadcasts == 6 * 2);
  CHECK(step(2).contiguous == 3 * 2);
  CHECK(step(2).stores == 0);
  // Of c 16 these are 48: two times 48 are stored and read.
  CHECK(step(16).broadcasts == 6 * 16);
  CHECK(step(16).contiguous == 3 * 16 + 2 * 48);
  CHECK(step(16).stores == 2 * 48);
}

TEST_CASE("Stores past the caches go on beside what else a loop computes") {
  const auto more = [](int64_t rows, int64_t columns, bool functions) {
    const Tensor x = input("X", f32, {rows, columns});
    const Axis i("i", rows), j("j", columns), i2("i", rows), j2("j", columns);
    const Expr value = functions ? exp(exp(x(i, j))) : x(i, j) + 1.0;
    const Tensor e = compute("E", {i, j}, value);
    Schedule s(make_program("two", {compute("Y", {i2, j2}, e(i2, j2) * e(i2, 0))}), machine());
    s["E"].compute_at("Y", "i");
    for (const char* stage : {"E", "Y"}) {
      s[stage].split("j", 16);
      s[stage].vectorize("j.i");
    }
    const double plain = draft_of(s).cycles;
    s["Y"].annotate("j.o", "stream", 1);
    const Draft streamed = draft_of(s);
    return (streamed.cycles - plain) / (streamed.features.far_cycles + 1);
  };
  // In rows of 2 KiB beside functions hardly anything is left of them; in rows of 64 KiB they do
  // not wait in the store buffer; and beside a sum there is not enough to do.
  CHECK(more(64, 512, true) < 0.1);
  CHECK(more(2, 16384, true) > 0.4);
  CHECK(more(64, 512, false) > 0.4);
}
