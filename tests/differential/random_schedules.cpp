#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "equivalence/random_formula.h"
#include "equivalence/random_step.h"
#include "formulas.h"
#include "interp/interp.h"

// Random formulas under random schedules: machine code beside the interpreter on the unscheduled
// program, on data flush against forbidden pages. All data is i32, so results are equal.

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int64_t kPrograms = 400;

std::vector<Array> make_data(const RandomFormula& f, GuardAt at, uint64_t seed) {
  Rng rng(seed);
  std::vector<Array> out;
  for (const Param& p : f.program.params) {
    out.push_back(guarded_array(p.buffer->dtype, const_shape(p.buffer->shape).value(), at));
    const size_t count = out.back().bytes() / sizeof(int32_t);
    for (size_t k = 0; k < count; ++k) {
      const auto value = static_cast<int32_t>(p.buffer->name == "idx" ? rng.below(f.index_limit)
                                                                      : rng.between(-20, 20));
      std::memcpy(static_cast<char*>(out.back().raw()) + k * sizeof value, &value, sizeof value);
    }
  }
  return out;
}

Schedule random_schedule(const RandomFormula& f, const Target& target, Rng& rng) {
  Schedule s(f.program, target);
  const int64_t attempts = rng.between(4, 24);
  for (int64_t k = 0; k < attempts; ++k) s.try_apply(random_step(s, rng));
  return s;
}

bool agrees(const RandomFormula& f, const Kernel& kernel, GuardAt at) {
  static ThreadPool pool(2);
  const std::vector<Array> want = make_data(f, at, 5), got = make_data(f, at, 5);
  std::vector<HostBuffer> buffers;
  for (const Array& a : want) buffers.push_back({a.raw()});
  interpret(f.program, buffers);
  std::vector<Array> arguments = kernel.prepacked(got);
  for (size_t k = 0; k < got.size(); ++k)
    if (arguments[k].raw() != got[k].raw()) arguments[k] = guarded_copy(arguments[k], at);
  kernel.run(arguments, pool);
  for (size_t k = 0; k < want.size(); ++k) {
    if (want[k].bytes() && std::memcmp(want[k].raw(), got[k].raw(), want[k].bytes()) != 0)
      return false;
  }
  return true;
}

}  // namespace

TEST_CASE("machine code of random schedules computes what the formula says") {
  const std::vector<Target> targets = runnable_targets();
  const char* only = std::getenv("TENON_CASE");
  const int64_t first = only ? std::atoll(only) : 0, last = only ? first + 1 : kPrograms;
  int64_t refused = 0;
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(n) + 20261130);
    const RandomFormula f = random_formula(rng);
    const Target& target = targets[static_cast<size_t>(n) % targets.size()];
    const Schedule s = random_schedule(f, target, rng);
    INFO("TENON_CASE=" << n << " " << target.name << "\n" << to_cpp(s.trace()) << s.print());
    try {
      const Kernel kernel = compile(s.program(), target);
      CHECK(agrees(f, kernel, GuardAt::end));
      CHECK(agrees(f, kernel, GuardAt::start));
    } catch (const UserError& e) {  // registers; code generation has no reason of its own
      CHECK_THAT(e.what(), Catch::StartsWith("lower error in"));
      ++refused;
    }
  }
  std::cout << fmt::format("differential: {} of {} random programs refused by lower\n", refused,
                           last - first);
  if (!only) CHECK(last - first - refused >= 300);
}
