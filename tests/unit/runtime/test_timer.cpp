#include <tenon/runtime/timer.h>

#include <catch2/catch.hpp>

using namespace tenon;

TEST_CASE("median, MAD and minimum") {
  const Samples odd{{5, 1, 9}}, even{{4, 1, 2, 100}}, none;
  CHECK(odd.median() == 5);
  CHECK(odd.mad() == 4);
  CHECK(odd.min() == 1);
  CHECK(even.median() == 3);
  CHECK(even.mad() == 1.5);
  CHECK(none.median() == 0);
  CHECK(none.mad() == 0);
  CHECK(none.min() == 0);
}

TEST_CASE("a sample takes at least the floor and is given for one call") {
  int calls = 0;
  auto wait_20_us = [&] {
    ++calls;
    const double until = now_us() + 20;
    while (now_us() < until) {
    }
  };
  const double start = now_us();
  const Samples samples = time_repeatedly(wait_20_us, 2000, 5);
  const double took = now_us() - start;
  REQUIRE(samples.us.size() == 5);
  CHECK(samples.min() >= 20);
  CHECK(samples.min() < 2000);
  CHECK(took >= 5 * 2000);
  CHECK(calls > 10);
}

TEST_CASE("a floor of 0 times single calls") {
  int calls = 0;
  CHECK(time_repeatedly([&] { ++calls; }, 0, 3).us.size() == 3);
  CHECK(calls == 4);  // a warm-up and three samples
}
