#include <catch2/catch.hpp>

#include <tenon/ir/ops.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cstdlib>
#include <iostream>

#include "interp/interp.h"
#include "lower/lower.h"
#include "random_formula.h"
#include "random_gpu_step.h"

using namespace tenon;

namespace {

constexpr int64_t kSeed = 20261130;
constexpr int64_t kTreeCases = 500;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? parse_int(text).value_or(otherwise) : otherwise;
}

std::vector<std::vector<int32_t>> run(const RandomFormula& f, const Program& program) {
  Rng rng(5);
  std::vector<std::vector<int32_t>> data;
  for (const Param& p : f.program.params) {
    int64_t count = 1;
    for (const Expr& e : p.buffer->shape) count *= *as_int(e);
    auto& values = data.emplace_back(static_cast<size_t>(count));
    for (int32_t& v : values)
      v = static_cast<int32_t>(p.buffer->name == "idx" ? rng.below(f.index_limit)
                                                       : rng.between(-20, 20));
  }
  std::vector<HostBuffer> args;
  for (auto& values : data) args.push_back({values.data()});
  interpret(program, args);
  return data;
}

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
    CHECK(verify_errors(s.program(), Form::LoopTree).empty());
    try {
      CHECK(run(f, s.program()) == run(f, f.program));
    } catch (const InternalError& e) {
      FAIL_CHECK(e.what());
    }
  }
  std::cout << fmt::format("gpu equivalence: {} programs, {} loops bound\n", last - first, bound);
  if (only < 0) CHECK(bound > 20);
}
