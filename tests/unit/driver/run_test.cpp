#include <tenon/driver/run.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <limits>

#include "schedule/legality.h"

using namespace tenon;

namespace {

NamedTrace unscheduled() { return {"unscheduled", {}}; }

// Counts an element of the sum twice: legal only while the rule against it is switched off.
NamedTrace wrong_schedule(const Task& task) {
  Schedule s(task.program, task.target);
  s.split("k", 4, {.tail = Tail::shift_inward});
  return {"wrong", s.trace()};
}

}  // namespace

TEST_CASE("an operator's tensors have the shapes of its formula, its kernel may merge them") {
  const OperatorCall call = operator_call({"elementwise", "op=add", "n=6"}, Target::host());
  REQUIRE(call.inputs.size() == 2);
  CHECK(call.inputs[0].name == "X");
  const OperatorCall pool =
      operator_call({"global_pool", "n=2", "c=3", "h=4", "w=5"}, Target::host());
  CHECK(pool.inputs[0].shape == Shape{2, 3, 4, 5});
  CHECK(pool.task.program.params[0].buffer->shape.size() < 4);
  const OperatorRun run =
      run_operator(pool, unscheduled(), {{"X", full(f32, {2, 3, 4, 5}, 7)}}, {});
  CHECK(run.sampled.empty());
  CHECK(run.outputs.at("Y").to_doubles() == std::vector<double>(6, 7.0));
}

TEST_CASE("a schedule with a wrong answer fails the check, with a file that reproduces it") {
  const OperatorCall call = operator_call({"matmul", "m=2", "n=3", "k=7"}, Target::host());
  const RuleOff off(Rule::split_shift_reduce);
  const NamedTrace wrong = wrong_schedule(call.task);
  const OperatorRun run = run_operator(call, wrong, {}, {.threads = 1, .check = true});
  CHECK(run.check == CheckResult::failed);
  const std::string before = "matmul under wrong: wrong answer: ", after = "; tenon replay ";
  CHECK_THAT(run.reason, Catch::StartsWith(before) && Catch::Contains(after) &&
                             Catch::EndsWith(" reproduces it"));
  const size_t at = run.reason.find(after) + after.size();
  const std::string file = run.reason.substr(at, run.reason.rfind(" reproduces") - at);
  CHECK(std::filesystem::remove(file));

  // A seed does not make arrays of the caller's.
  const OperatorRun given =
      run_operator(call, wrong, {{"A", full(f32, {2, 7}, 1)}}, {.threads = 1, .check = true});
  CHECK(given.check == CheckResult::failed);
  CHECK_THAT(given.reason, !Catch::Contains("replay"));
  const OperatorRun right = run_operator(call, unscheduled(), {}, {.threads = 1, .check = true});
  CHECK(right.check == CheckResult::passed);
  CHECK(right.reason == "");
}

TEST_CASE("a target that this machine is not is refused as an absent device") {
  OperatorCall call = operator_call({"matmul", "m=2", "n=3", "k=7"}, Target::host());
  call.task.target.features.push_back("zz-of-tomorrow");
  CHECK_THROWS_AS(run_operator(call, unscheduled(), {}, {}), DeviceError);
}

TEST_CASE("a summary leaves NaN out and counts them, over parts of large arrays") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Summary some = summarize(from_vector<double>({4}, {nan, 3, -1, 4}));
  CHECK(some.min == -1);
  CHECK(some.max == 4);
  CHECK(some.mean == 2);
  CHECK(some.nan == 1);
  const Summary none = summarize(zeros(f32, {0, 3}));
  CHECK((std::isnan(none.min) && std::isnan(none.max) && std::isnan(none.mean)));
  Array large = full(u8, {3, 100'000}, 2);
  large.data<uint8_t>()[299'999] = 9;
  CHECK(summarize(large).max == 9);
  CHECK(summarize(large).mean == Approx(2 + 7.0 / 300'000));
}
