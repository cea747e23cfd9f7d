#include <fmt/format.h>

#include <catch2/catch.hpp>

#include <iostream>

#include "random_gpu_step.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/oracle.h"

using namespace tenon;

namespace {

constexpr int64_t kSeed = 20261130;
constexpr int64_t kTreeCases = 500;

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
