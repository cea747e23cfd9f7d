#include <fmt/format.h>
#include <tenon/autotvm/tune.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "interp/interp.h"
#include "kernels/templates.h"
#include "user_formulas.h"

// Each formula by the interpreter and as machine code: unscheduled, under every template at its
// default and at random points, and tuned for a few trials, beside plain loops.

using namespace tenon;
using namespace tenon::test;

namespace {

using All = std::vector<std::vector<double>>;

std::string difference(const Case& c, const GuardedArguments& arguments, const All& want) {
  if (arguments.all.size() - arguments.outputs_from != want.size())
    return "another number of outputs";
  for (size_t o = 0; o < want.size(); ++o) {
    const auto got = arguments.all[arguments.outputs_from + o].to_doubles();
    if (got.size() != want[o].size())
      return fmt::format("output {} has {} elements", o, got.size());
    double largest = 0;
    for (double v : want[o])
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    for (size_t k = 0; k < got.size(); ++k) {
      if (got[k] == want[o][k] || std::fabs(got[k] - want[o][k]) <= c.tolerance * largest) continue;
      return fmt::format("output {} element {} of {}: {} and not {}", o, k, got.size(), got[k],
                         want[o][k]);
    }
  }
  return {};
}

constexpr uint64_t kSeed = 23;

void interpret_and_check(const Case& c, const Program& program, const All& want) {
  const GuardedArguments arguments(program, GuardAt::end, kSeed);
  std::vector<HostBuffer> buffers;
  for (const Array& a : arguments.all) buffers.push_back({a.raw()});
  interpret(program, buffers);
  CHECK(difference(c, arguments, want) == "");
}

void run_and_check(const Case& c, const Program& program, const All& want) {
  const Kernel kernel = compile(program, Target::host());
  for (GuardAt at : {GuardAt::end, GuardAt::start}) {
    const GuardedArguments arguments(program, at, kSeed);
    kernel.run(kernel.prepacked(arguments.all), default_pool());
    CHECK(difference(c, arguments, want) == "");
  }
}

All expected(const Case& c, const Program& program) {
  return c.want(GuardedArguments(program, GuardAt::end, kSeed).inputs);
}

std::string text(const Case& c) { return print(make_program("p", c.outputs)); }

}  // namespace

TEST_CASE("users' formulas: the interpreter and unscheduled machine code agree with plain loops") {
  int number = 0;
  for (const Case& c : user_formulas()) {
    ++number;
    DYNAMIC_SECTION(c.name << " " << number) {
      INFO(text(c));
      const Program program = make_program("p", c.outputs);
      const All want = expected(c, program);
      interpret_and_check(c, program, want);
      run_and_check(c, program, want);
      interpret_and_check(c, merge_dimensions(program), want);
    }
  }
}

TEST_CASE("users' formulas: every template at its default and at random points") {
  int number = 0;
  for (const Case& c : user_formulas()) {
    ++number;
    const Program program = merge_dimensions(make_program("p", c.outputs));
    const All want = expected(c, program);
    for (const NamedTemplate& t : templates_for(program, Target::host())) {
      DYNAMIC_SECTION(t.name << " of " << c.name << " " << number) {
        INFO(text(c));
        Rng rng(5);
        const KnobSpace space = survey(t.fn, program, Target::host());
        for (int n = 0; n < 9; ++n) {
          const Point point = n == 0 ? space.default_point() : space.random_point(rng);
          Schedule s(program, Target::host());
          Knobs knobs(point);
          t.fn(s, knobs);
          INFO(point.to_json() << "\n" << s.print());
          run_and_check(c, s.program(), want);
          if (n < 2) interpret_and_check(c, s.program(), want);
        }
      }
    }
  }
}

TEST_CASE("users' formulas: the tuner finds nothing wrong and its best agrees") {
  const auto folder = std::filesystem::temp_directory_path() / "tenon-user-formulas";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const Case& c : user_formulas()) {
    if (++number % 6 != 1) continue;  // tuning measures in processes of its own
    DYNAMIC_SECTION(c.name << " " << number) {
      INFO(text(c));
      const Program program = merge_dimensions(make_program("p", c.outputs));
      const Task task(c.name, program, templates_for(program, Target::host()), Target::host());
      const TuneReport report = tune_with_report(
          task,
          {.trials = 4, .log = (folder / fmt::format("{}.jsonl", number)).string(), .quiet = true});
      CHECK(report.statuses.count("wrong_answer") == 0);
      CHECK(report.statuses.count("compile_error") == 0);
      CHECK(report.statuses.count("run_error") == 0);
      run_and_check(c, compile(task, report.best.record).program(), expected(c, program));
    }
  }
  std::filesystem::remove_all(folder);
}
