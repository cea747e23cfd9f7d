#include <catch2/catch.hpp>

#include <tenon/schedule/roles.h>

#include <iostream>

#include "tests/fuzz/draw.h"
#include "tests/fuzz/oracle.h"

using namespace tenon;

// Random formulas under random schedules give what the unscheduled formula gives in the
// interpreter. TENON_SEED chooses others, TENON_CASES how many, TENON_CASE one alone.

namespace {

constexpr int64_t kPrograms = 2000;
constexpr int64_t kSeed = 20261129;

using Judge = std::string (*)(const Oracle&, const Schedule&, bool* refused);

struct Run {
  Tally tally;
  int64_t lowering_refused = 0;
};

Run check_programs(int64_t first, int64_t count, Judge judge) {
  const auto seed = static_cast<uint64_t>(from_environment("TENON_SEED", kSeed));
  const int64_t only = from_environment("TENON_CASE", -1);
  count = only < 0 ? count * from_environment("TENON_CASES", kPrograms) / kPrograms : 1;
  Run run;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t number = only < 0 ? first + n : only;
    const DrawnProgram d = draw_program(seed, number, narrow_target(), &run.tally);
    bool refused = false;
    const std::string fault = judge(Oracle(d.formula, d.data_seed), d.schedule, &refused);
    run.lowering_refused += refused;
    INFO("TENON_SEED=" << seed << " TENON_CASE=" << number << " build/bin/test_equivalence\n"
                       << d.formula.kind << "\n"
                       << print(d.formula.program) << to_cpp(d.schedule.trace())
                       << d.schedule.print());
    if (!fault.empty()) FAIL_CHECK(fault);
  }
  return run;
}

}  // namespace

TEST_CASE("2000 random programs agree as loop trees and as flat code, without races") {
  const Run run =
      check_programs(0, kPrograms, [](const Oracle& o, const Schedule& s, bool* refused) {
        const std::string fault = o.tree_fault(s.program());
        return fault.empty() ? o.flat_fault(s.program(), s.target(), refused) : fault;
      });
  std::cout << "equivalence: " << run.tally.text() << "  lower refused " << run.lowering_refused
            << "\n";
  if (run.tally.programs < kPrograms) return;  // a run of fewer proves less
  CHECK(run.tally.refusals() < 0.6);
  CHECK(run.tally.structural_per_program() >= 4);
  CHECK(run.lowering_refused * 4 < kPrograms);
  for (const std::string& name : primitive_names()) {
    if (name == Bind::kName) continue;  // gpu_test.cpp draws the steps for GPUs
    INFO(name);
    CHECK(run.tally.accepted.count(name));
    if (run.tally.accepted.count(name)) CHECK(run.tally.accepted.at(name) >= 20);
  }
  for (const FormulaKind& kind : formula_kinds()) {
    INFO(kind.name);
    CHECK(run.tally.kinds.count(kind.name));
  }
}

TEST_CASE("fusing the loops of an empty reduction keeps its init") {
  const Tensor a = input("A", i32, {3, 0});
  const Axis i("i", 3), k("k", 0);
  const RandomFormula f{"empty", make_program("empty", {compute("C", {i}, sum(a(i, k), k))})};
  Schedule s(f.program, narrow_target());
  s["C"].split("k", 2);
  s["C"].reorder({"k.i", "k.o"});
  s["C"].fuse("k.i", "k.o");
  INFO(s.print());
  CHECK(Oracle(f, 5).tree_fault(s.program()) == "");
}

TEST_CASE("the generic template computes what the formula says at random points") {
  const auto seed = static_cast<uint64_t>(from_environment("TENON_SEED", kSeed));
  for (uint64_t n = 0; n < 60; ++n) {
    Choices choices(seed + 77 * n);
    const RandomFormula f = random_formula(choices);
    Schedule s(f.program, narrow_target());
    Rng rng(seed + n);
    Knobs knobs(rng);
    generic_template(s, knobs);
    INFO("seed " << seed << " case " << n << "\n" << to_cpp(s.trace()) << s.print());
    CHECK(Oracle(f, 5).tree_fault(s.program()) == "");
  }
}
