#include <fmt/format.h>

#include <catch2/catch.hpp>

#include <iostream>

#include "lower/lower.h"
#include "tests/fuzz/random_gpu_step.h"
#include "schedule/legality.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/oracle.h"

using namespace tenon;

namespace {

constexpr int64_t kSeed = 20261130;
constexpr int64_t kTreeCases = 500;
constexpr int64_t kFlatCases = 500;

/// Up to two dozen steps on a small GPU.
Schedule random_gpu_schedule(const RandomFormula& f, Rng& rng, int64_t* bound = nullptr) {
  Schedule s(f.program, Target::generic_gpu());
  const int64_t attempts = rng.between(6, 24);
  for (int64_t n = 0; n < attempts; ++n) {
    const Primitive step = random_gpu_step(s, rng);
    if (!s.try_apply(step) && bound) *bound += std::holds_alternative<Bind>(step);
  }
  return s;
}

}  // namespace

TEST_CASE("random schedules for a GPU compute what the formula says") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  const int64_t only = from_environment("TENON_CASE", -1);
  const int64_t first = std::max<int64_t>(only, 0),
                last = only < 0 ? from_environment("TENON_CASES", kTreeCases) : only + 1;
  int64_t bound = 0;
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(seed) * 1000033 + static_cast<uint64_t>(n));
    const RandomFormula f = random_formula(rng);
    const Schedule s = random_gpu_schedule(f, rng, &bound);
    INFO("TENON_SEED=" << seed << " TENON_CASE=" << n << "\n" << to_cpp(s.trace()) << s.print());
    CHECK(Oracle(f, 5).tree_fault(s.program()) == "");
  }
  std::cout << fmt::format("gpu equivalence: {} programs, {} loops bound\n", last - first, bound);
  if (only < 0) CHECK(bound > 20);
}

TEST_CASE("random schedules for a GPU still compute what the formula says as flat code") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  const int64_t only = from_environment("TENON_CASE", -1);
  const int64_t first = std::max<int64_t>(only, 0),
                last = only < 0 ? from_environment("TENON_CASES", kFlatCases) : only + 1;
  int64_t refused = 0, barriers = 0;
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(seed) * 7907 + static_cast<uint64_t>(n));
    const RandomFormula f = random_formula(rng);
    const Schedule s = random_gpu_schedule(f, rng);
    INFO("TENON_SEED=" << seed << " TENON_CASE=" << n << "\n" << to_cpp(s.trace()) << s.print());
    bool not_possible = false;
    CHECK(Oracle(f, 5).flat_fault(s.program(), s.target(), &not_possible) == "");
    refused += not_possible;
    if (!not_possible)
      barriers += print(lower(s.program(), s.target())).find("barrier") != std::string::npos;
  }
  std::cout << fmt::format(
      "gpu equivalence: {} of {} programs refused by lower, {} have barriers\n", refused,
      last - first, barriers);
  if (only < 0) CHECK(refused * 2 < last - first);
  if (only < 0) CHECK(barriers > 20);
}

TEST_CASE("each legality rule for GPUs, switched off, is missed by random schedules") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  for (const RuleInfo& rule : rules()) {
    if (rule.kind != RuleKind::legality || rule.id.rfind("gpu_", 0) != 0) continue;
    const RuleOff off(rule.rule);
    int64_t found_at = -1;
    for (int64_t n = 0; n < 4000 && found_at < 0; ++n) {
      Rng rng(static_cast<uint64_t>(seed) * 104729 + static_cast<uint64_t>(n));
      const RandomFormula f = random_formula(rng);
      const Schedule s = random_gpu_schedule(f, rng);
      if (!Oracle(f, 5).flat_fault(s.program(), s.target()).empty()) found_at = n;
    }
    INFO(rule.id);
    std::cout << fmt::format("gpu equivalence: without {} a fault at program {}\n", rule.id,
                             found_at);
    CHECK(found_at >= 0);
  }
}
