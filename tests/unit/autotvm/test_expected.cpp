#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "autotvm/measure/long_step.h"
#include "row_sums.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

/// Of n x n matrices, over the first `steps` of k.
Task product_of(int64_t n, int64_t steps) {
  const Axis i("i", n), j("j", n), k("k", steps);
  const Tensor a = input("A", f32, {n, n}), b = input("B", f32, {n, n});
  return Task("product", compute("C", {i, j}, sum(a(i, k) * b(k, j), k)), Target::host());
}

/// Larger than plain loops are quick for, and than the interpreter may run as a whole.
Task large_product() { return product_of(512, 512); }

Candidate default_of(const Task& task) {
  const Schedule s = default_schedule(task);
  return {"generic", {}, s.trace(), s.program()};
}

/// Compiles programs as ever, but those that the task's expected outputs come from lack some of the
/// products: by a formula that leaves out the last step of k.
KernelObject forgets_a_step(const Program&) {
  return compile_object(default_schedule(product_of(512, 511)).program(), Target::host());
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

TEST_CASE("a small task is checked by points where the interpreter has no time for all of it") {
  const auto wrong = [](const Program&) {
    return compile_object(default_schedule(product_of(64, 63)).program(), Target::host());
  };
  RunnerOptions options = quick_options();
  const Task task = product_of(64, 64);
  CHECK_THROWS_WITH(local_runner_with(task, options, wrong)->measure({default_of(task)}),
                    Contains("the unscheduled kernel disagrees with the interpreter: C["));
  options.interpreter_s = 0;
  CHECK_THROWS_WITH(
      local_runner_with(task, options, wrong)->measure({default_of(task)}),
      Contains("the unscheduled kernel disagrees with the interpreter at element 0: C["));
}

TEST_CASE("a long step says now and then that it is running, a short one does not") {
  std::vector<std::string> said;
  const auto say = [&](const std::string& text) { said.push_back(text); };
  { const LongStep quick(say, "what is right", 60, 60); }
  CHECK(said.empty());
  {
    const LongStep slow(say, "what is right", 0.01, 0.01);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  REQUIRE(said.size() >= 2);
  CHECK(said[0] == "what is right, 0 s so far");
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
