#include <fmt/format.h>
#include <tenon/support/error.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <iostream>

#include "kernels/table.h"
#include "kernels/templates.h"
#include "template_cases.h"

// A log keeps traces of one member of a family; the others may replay them. Either every step is
// legal there and the result right, or the first step that is not is refused in words.

using namespace tenon;
using Words = std::vector<std::string>;

namespace {

/// An operator's arguments with {} for the extent that differs.
struct Family {
  const char* kernel;
  Words patterns;
};

const std::vector<Family>& families() {
  static const std::vector<Family> list = {
      {"matmul", {"m={}", "n=37", "k=7"}},
      {"matmul", {"m=7", "n={}", "k=17"}},
      {"matmul", {"m=7", "n=17", "k={}"}},
      {"batch_matmul", {"batch={}", "m=7", "n=17", "k=5"}},
      {"gemm", {"m=7", "n={}", "k=17"}},
      {"conv2d", {"c_in=3", "h={}", "w=7", "c_out=5", "k=3", "pad=1"}},
      {"conv2d", {"c_in=7", "h=7", "w={}", "c_out=7", "k=3", "pad=1", "groups=7"}},
      {"pool", {"c={}", "h=7", "w=17", "k=3", "stride=2", "pad=1"}},
      {"global_pool", {"c={}", "h=7", "w=5"}},
      {"softmax", {"rows=7", "columns={}"}},
      {"log_softmax", {"rows={}", "columns=17"}},
      {"attention", {"heads=2", "q={}", "kv=9", "d=5"}},
      {"layer_norm", {"rows={}", "columns=37"}},
      {"batch_norm", {"c=7", "h=5", "w={}"}},
      {"reduce", {"shape=7x{}", "axis=1"}},
      {"reduce", {"shape={}x17", "axis=0"}},
      {"elementwise", {"op=add_relu", "n={}"}},
      {"transpose", {"shape=17x{}"}},
      {"concat", {"shape=3x{}", "parts=4"}},
      {"slice", {"shape=7x{}", "steps=2,-3"}},
      {"pad", {"shape=7x{}", "before=0,2", "after=1,3", "value=2"}},
      {"gather", {"shape=17x7", "indices={}"}},
      {"expand", {"shape=7x1", "to=7x{}"}},
      {"tile", {"shape=3x{}", "repeats=2,3"}}};
  return list;
}

Case member(const Family& family, int64_t extent) {
  Case out{family.kernel, {}};
  for (const std::string& pattern : family.patterns)
    out.words.push_back(fmt::format(fmt::runtime(pattern), extent));
  return out;
}

struct Tally {
  int replayed = 0, refused = 0;
};

/// Replays the trace on other members of the family.
void check_replays(const Family& family, const Trace& trace, Tally& tally) {
  for (const int64_t extent : {0, 1, 7, 64, 131}) {
    const Case c = member(family, extent);
    const Program program = build_case(c, 0);
    INFO("on " << text(c) << "\n" << to_cpp(trace));
    try {
      const Schedule again = replay(program, Target::host(), trace);
      CHECK(again.trace() == trace);
      const auto inputs = random_inputs(program, 3);
      CHECK(difference(run_interpreted(again.program(), inputs), run_interpreted(program, inputs),
                       1e-4) == "");
      ++tally.replayed;
    } catch (const ScheduleError& e) {
      CHECK_THAT(e.what(), Catch::Contains("schedule error in") && Catch::Contains(", step "));
      ++tally.refused;
    }
  }
}

}  // namespace

TEST_CASE("traces of all templates replay on other extents or are refused in words") {
  Rng rng(7);
  Tally tally;
  for (const Family& family : families()) {
    const Program program = build_case(member(family, 130), 0);
    for (const NamedTemplate& t : templates_for(program, Target::host())) {
      const KnobSpace space = survey(t.fn, program, Target::host());
      for (const Point& point : {space.default_point(), space.random_point(rng)}) {
        Schedule s(program, Target::host());
        Knobs knobs(point);
        t.fn(s, knobs);
        INFO(family.kernel << ", " << t.name << " " << point.to_json());
        check_replays(family, trace_from_json(to_json(s.trace())), tally);
      }
    }
  }
  std::cout << fmt::format("kernels: traces replayed on {} other extents, refused on {}\n",
                           tally.replayed, tally.refused);
  CHECK(tally.replayed > tally.refused);
}
