#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "row_sums.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

/// Larger than plain loops are quick for, and than the interpreter may run as a whole.
Task large_product() {
  const Axis i("i", 512), j("j", 512), k("k", 512);
  const Tensor a = input("A", f32, {512, 512}), b = input("B", f32, {512, 512});
  return Task("product", compute("C", {i, j}, sum(a(i, k) * b(k, j), k)), Target::host());
}

Candidate default_of(const Task& task) {
  const Schedule s = default_schedule(task);
  return {"generic", {}, s.trace(), s.program()};
}

/// Compiles programs as ever, but those that the task's expected outputs come from lack some of the
/// products: by a formula that leaves out the last step of k.
KernelObject forgets_a_step(const Program&) {
  const Axis i("i", 512), j("j", 512), k("k", 511);
  const Tensor a = input("A", f32, {512, 512}), b = input("B", f32, {512, 512});
  const Task wrong("product", compute("C", {i, j}, sum(a(i, k) * b(k, j), k)), Target::host());
  return compile_object(default_schedule(wrong).program(), Target::host());
}

}  // namespace

TEST_CASE("a large task's outputs come from a fast kernel that chosen points confirm") {
  const Task task = large_product();
  const auto runner = local_runner(task, quick_options());
  const std::vector<Measurement> results = runner->measure({default_of(task)});
  REQUIRE(results.size() == 1);
  CHECK(results[0].reason == "");
  CHECK(results[0].check == CheckResult::passed);
  const std::map<std::string, double> stages = runner->notes().stage_s;
  for (const char* stage :
       {"inputs", "expected", "compile", "start", "load", "first", "verify", "time"})
    CHECK(stages.at(stage) > 0);
}

TEST_CASE("a fast kernel that is wrong is found by points") {
  const auto runner = local_runner_with(large_product(), quick_options(), forgets_a_step);
  CHECK_THROWS_WITH(
      runner->measure({default_of(large_product())}),
      Contains("the generic schedule's kernel disagrees with the interpreter at element 0"));
}

// A product of products: one element of the outer takes 512 * 512 steps and more, so no point can
// be had within the limit, and the plain loops answer.
TEST_CASE("where no point is cheap the unscheduled kernel says what is right") {
  const Axis i("i", 512), j("j", 512), k("k", 512);
  const Tensor a = input("A", f32, {512, 512}), b = input("B", f32, {512, 512});
  const Tensor ab = compute("AB", {i, j}, sum(a(i, k) * b(k, j), k));
  const Task task("twice", compute("C", {i, j}, sum(ab(i, k) * b(k, j), k)), Target::host());
  RunnerOptions options = quick_options();
  options.oracle_limit = 10000;
  const std::vector<Measurement> results = local_runner(task, options)->measure({default_of(task)});
  REQUIRE(results.size() == 1);
  CHECK(results[0].reason == "");
  CHECK(results[0].check == CheckResult::passed);
}

TEST_CASE("no candidate is begun when the time is over") {
  const auto runner = local_runner_with(row_sums(), quick_options(), compile_row_sums);
  CHECK(runner->measure({named_candidate("right")}).size() == 1);
  runner->begin_until(now_us());
  CHECK(runner->measure({named_candidate("right")}).empty());
  CHECK(runner->compare({named_candidate("right"), named_candidate("right")}, 0.1).size() == 2);
}
