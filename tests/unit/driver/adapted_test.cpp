#include <tenon/driver/bench.h>
#include <tenon/driver/driver.h>

#include <catch2/catch.hpp>

using namespace tenon;

namespace {

constexpr const char* kWhere = "some.jsonl:3";

/// A product whose only template does nothing, so that any real schedule beats its default.
Task plain_product(const std::string& m) {
  Task task = operator_task({"matmul", "m=" + m, "n=128", "k=128"}, Target::host());
  task.templates = {{"plain", [](Schedule&, Knobs&) {}}};
  return task;
}

Trace fast_trace() {
  return default_schedule(operator_task({"matmul", "m=96", "n=128", "k=128"}, Target::host()))
      .trace();
}

RecordStore store_with(const Task& task, const Trace& trace) {
  const RecordQuery query = record_query(task, 1);
  LoggedRecord logged;
  logged.where = LogRef::parse(kWhere);
  logged.record.program = query.program;
  logged.record.family = query.family;
  logged.record.args = task.args;
  logged.record.target = query.target;
  logged.record.trace = to_json(trace);
  logged.record.status = TrialStatus::ok;
  logged.record.check = CheckResult::passed;
  logged.record.samples_us = {1, 1, 1};
  logged.record.tenon = query.tenon;
  logged.record.llvm = query.llvm;
  return RecordStore({logged});
}

}  // namespace

TEST_CASE("a neighbour's schedule is taken where it is right and faster than the default") {
  const RecordStore store = store_with(plain_product("96"), fast_trace());
  const std::vector<NamedTrace> found = default_and_best(plain_product("128"), store, 1);
  REQUIRE(found.size() == 2);
  CHECK(found[0].schedule == "default");
  CHECK(found[1].schedule == std::string("adapted from ") + kWhere);
  CHECK(!found[1].trace.empty());
  CHECK(default_and_best(plain_product("96"), store, 1).at(1).schedule == kWhere);
}

TEST_CASE("a neighbour's schedule that is no faster than the default is left alone") {
  const Task task = operator_task({"matmul", "m=128", "n=128", "k=128"}, Target::host());
  Schedule slow(task.program, task.target);
  slow.split("i", 4);
  CHECK(default_and_best(task, store_with(plain_product("96"), slow.trace()), 1).size() == 1);
}

TEST_CASE("an adapted schedule is not run for a target that this machine is not") {
  Task task = plain_product("128");
  task.target.features.push_back("zz-of-tomorrow");
  CHECK(!check_adapted(1)(task, fast_trace()));
}

TEST_CASE("bench packs what a schedule takes packed ahead") {
  const Task task = operator_task({"matmul", "m=9", "n=37", "k=12", "constant=B"}, Target::host());
  Schedule s(task.program, task.target);
  s.pack("B", {{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}, {.when = PackWhen::ahead});
  BenchOptions options;
  options.threads = 1;
  options.rounds = 1;
  options.floor_us = 0;
  options.peak_gflops = 1;
  const std::vector<BenchRow> rows = bench(task, {{"packed", s.trace()}}, options);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].reason == "");
  CHECK(rows[0].check == CheckResult::passed);
}
