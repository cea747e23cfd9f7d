#include "schedule/plain_writes.h"

#include <catch2/catch.hpp>

#include "schedule_formulas.h"

using namespace tenon;

// The quick test says nothing that the dependence test does not prove; where they must agree is
// tested in tests/equivalence, whose schedules go through both.

namespace {

bool apart(const Schedule& s, const std::string& stage, const std::string& loop,
           Accumulation accumulation = Accumulation::conflicts) {
  const StagePath path = find_stage(s.program(), stage);
  const size_t at = find_loop(path, loop);
  return writes_lie_apart(path, at, at, accumulation);
}

}  // namespace

TEST_CASE("Iterations lie apart where each coefficient is more than the smaller ones reach") {
  Schedule s(Matmul(12, 32, 8).program(), wide_target());
  s.split("i", 4);
  CHECK(apart(s, "C", "i.o"));
  CHECK(apart(s, "C", "i.i"));
  CHECK(apart(s, "C", "j"));
  // The sum's iterations meet in their element, which is allowed where it is asked for.
  CHECK_FALSE(apart(s, "C", "k"));
  CHECK(apart(s, "C", "k", Accumulation::allowed));
  // All loops of a nest at once.
  const StagePath nest = find_stage(s.program(), "C");
  CHECK(writes_lie_apart(nest, 0, 2, Accumulation::conflicts));
  CHECK_FALSE(writes_lie_apart(nest, 0, 3, Accumulation::conflicts));
  CHECK(writes_lie_apart(nest, 0, 3, Accumulation::allowed));
  CHECK(conflict_in_nest(nest, 0, 3, Accumulation::allowed) == std::nullopt);
  CHECK(conflict_in_nest(nest, 1, 3, Accumulation::conflicts)->loop == 3);
}

TEST_CASE("The quick test says nothing of indices other than sums of loops times constants") {
  Schedule s(Matmul(12, 32, 8).program(), wide_target());
  s.fuse("i", "j");
  CHECK_FALSE(apart(s, "C", "i_j"));
  CHECK(conflict_between_iterations(find_stage(s.program(), "C"), 0, Accumulation::conflicts) ==
        std::nullopt);
  Schedule shifted(Matmul(10, 32, 8).program(), wide_target());
  shifted.split("i", 4, {.tail = Tail::shift_inward});
  CHECK_FALSE(apart(shifted, "C", "i.o"));
}

TEST_CASE("Coefficients that reach into each other, and readers beside the writer, need a proof") {
  const Tensor x = input("X", f32, {64});
  const Axis a("a", 64), i("i", 61);
  const Tensor p = compute("P", {a}, x(a) + x(a));
  Schedule s(make_program("taps", {compute("C", {i}, p(i) + p(Expr(i) + 3))}), wide_target());
  const auto [io, ii] = s["C"].split("i", 8);
  s["P"].compute_at(io);
  // P is private to an iteration of i.o; inside it, one loop writes what the other reads.
  CHECK(apart(s, "C", "i.o"));
  CHECK(apart(s, "C", "i.i"));

  Schedule beside(Matmul(12, 32, 8).program(), wide_target());
  beside.split("k", 4);
  beside.reorder({"k.o", "i", "j", "k.i"});
  const CacheWriteStages made = beside.cache_write("i");
  CHECK_FALSE(apart(beside, "C", "k.o"));  // C.load reads what C.store wrote
  CHECK(apart(beside, made.store, "j"));
  const StagePath store = find_stage(beside.program(), made.store);
  CHECK_FALSE(writes_lie_apart(store, 1, 1, Accumulation::conflicts));  // i, round both
}
