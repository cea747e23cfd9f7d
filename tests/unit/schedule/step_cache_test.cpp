#include <tenon/schedule/schedule.h>
#include <tenon/schedule/step_cache.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>

using namespace tenon;

namespace {

Program product() {
  const Tensor a = input("A", f32, {64, 48}), b = input("B", f32, {48, 32});
  const Axis i("i", 64), j("j", 32), k("k", 48);
  return make_program("matmul", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))});
}

Schedule tiled(Schedule s, int64_t rows, int64_t columns) {
  s.split("i", rows);
  s.split("j", columns);
  s.reorder({"i.o", "j.o", "k", "i.i", "j.i"});
  s.vectorize("j.i", {.tail = Tail::mask}).unroll("i.i");
  return s;
}

}  // namespace

TEST_CASE("Schedules of a step cache say what schedules without it say, step by step") {
  const auto cache = std::make_shared<StepCache>(product(), std::make_shared<const Target>());
  for (int round = 0; round < 4; ++round)
    for (const int64_t rows : {4, 6, 8})
      for (const int64_t columns : {8, 16}) {
        const Schedule with = tiled(Schedule(cache), rows, columns);
        const Schedule without = tiled(Schedule(product(), Target()), rows, columns);
        CHECK(with.print() == without.print());
        CHECK(to_json(with.trace()) == to_json(without.trace()));
      }
  CHECK(cache->found() > 0);
}

TEST_CASE("A step cache keeps what was taken twice and takes the rest anew") {
  const auto cache = std::make_shared<StepCache>(product(), std::make_shared<const Target>());
  const Schedule first = tiled(Schedule(cache), 4, 8);
  CHECK(cache->found() == 0);
  const Schedule second = tiled(Schedule(cache), 4, 8);
  CHECK(cache->found() == 0);
  const Schedule third = tiled(Schedule(cache), 4, 8);
  CHECK(cache->found() == 5);
  CHECK(third.program().body.same_as(second.program().body));
  tiled(Schedule(cache), 4, 16);
  CHECK(cache->found() == 6);  // the split of i
}

TEST_CASE("A step that a step cache's schedule refuses changes nothing and says the same") {
  const auto cache = std::make_shared<StepCache>(product(), std::make_shared<const Target>());
  const auto refused = [](Schedule s) {
    s.split("i", 4);
    try {
      s.split("i", 2);
    } catch (const ScheduleError& e) {
      CHECK(s.trace().size() == 1);
      return std::string(e.what());
    }
    return std::string("not refused");
  };
  const std::string alone = refused(Schedule(product(), Target()));
  CHECK(alone.find("loop \"i\" was split into \"i.o\", \"i.i\" by step 1") != std::string::npos);
  for (int n = 0; n < 3; ++n) CHECK(refused(Schedule(cache)) == alone);
}
