#include <catch2/catch.hpp>

#include <iostream>

#include "formulas.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/oracle.h"

// The random programs of tests/equivalence as machine code beside the interpreter on the
// unscheduled formula, on data flush against forbidden pages, for every target that runs here in
// turn.

using namespace tenon;

namespace {

constexpr int64_t kPrograms = 500;  // a case: 2000 in all

void check_machine_code(int64_t part) {
  const std::vector<Target> targets = test::runnable_targets();
  const auto seed = static_cast<uint64_t>(from_environment("TENON_SEED", 20261129));
  const int64_t only = from_environment("TENON_CASE", -1);
  int64_t refused = 0, programs = 0;
  for (int64_t n = part * kPrograms; n < (part + 1) * kPrograms; ++n) {
    if (only >= 0 && n != only) continue;
    const Target& target = targets[static_cast<size_t>(n) % targets.size()];
    const DrawnProgram d = draw_program(seed, n, target);
    INFO("TENON_SEED=" << seed << " TENON_CASE=" << n << " " << target.name << "\n"
                       << print(d.formula.program) << to_cpp(d.schedule.trace())
                       << d.schedule.print());
    bool not_possible = false;
    const std::string fault =
        Oracle(d.formula, d.data_seed).machine_fault(d.schedule.program(), target, &not_possible);
    if (!fault.empty()) FAIL_CHECK(fault);
    refused += not_possible;
    ++programs;
  }
  std::cout << fmt::format("differential: lower refused {} of {} random programs\n", refused,
                           programs);
  if (only < 0) CHECK(refused * 4 < kPrograms);
}

}  // namespace

TEST_CASE("machine code of random programs 0 to 499 agrees") { check_machine_code(0); }
TEST_CASE("machine code of random programs 500 to 999 agrees") { check_machine_code(1); }
TEST_CASE("machine code of random programs 1000 to 1499 agrees") { check_machine_code(2); }
TEST_CASE("machine code of random programs 1500 to 1999 agrees") { check_machine_code(3); }
