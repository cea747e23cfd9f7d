#include <tenon/runtime/thread_pool.h>

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include <tenon/runtime/denormals.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>
#include <tenon/target/target.h>

using namespace tenon;
using Catch::Matchers::Contains;

TEST_CASE("every iteration runs exactly once, in contiguous ranges of equal size") {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    REQUIRE(pool.workers() == threads);
    for (int64_t count : {1, 2, 3, 6, 7, 8, 100, 1001}) {
      CAPTURE(threads, count);
      std::vector<int> hits(count, 0);
      std::vector<int64_t> sizes(threads, 0);
      pool.for_ranges(count, [&](int64_t begin, int64_t end, int worker) {
        sizes[worker] += end - begin;
        for (int64_t k = begin; k < end; ++k) ++hits[k];
      });
      CHECK(hits == std::vector<int>(count, 1));
      const int64_t most = *std::max_element(sizes.begin(), sizes.end());
      CHECK(most == (count + threads - 1) / threads);
    }
  }
}

TEST_CASE("nothing to do starts nothing") {
  ThreadPool pool(2);
  int calls = 0;
  for (int64_t count : {int64_t{0}, int64_t{-5}, INT64_MIN}) {
    pool.for_ranges(count, [&](int64_t, int64_t, int) { ++calls; });
  }
  CHECK(calls == 0);
}

TEST_CASE("a huge count is split without overflow") {
  ThreadPool pool(3);
  std::vector<std::pair<int64_t, int64_t>> ranges(3);
  pool.for_ranges(INT64_MAX, [&](int64_t begin, int64_t end, int worker) {
    ranges[worker] = {begin, end};
  });
  CHECK(ranges[0].first == 0);
  CHECK(ranges[0].second == ranges[1].first);
  CHECK(ranges[1].second == ranges[2].first);
  CHECK(ranges[2].second == INT64_MAX);
}

TEST_CASE("a nested loop runs serially on the worker that starts it") {
  ThreadPool pool(3);
  std::vector<int64_t> sums(3, 0);
  std::atomic<int> strangers{0};
  pool.for_ranges(3, [&](int64_t, int64_t, int outer) {
    pool.for_ranges(100, [&](int64_t begin, int64_t end, int inner) {
      if (inner != outer || begin != 0 || end != 100) ++strangers;
      for (int64_t k = begin; k < end; ++k) sums[outer] += k;
    });
  });
  CHECK(strangers == 0);
  CHECK(sums == std::vector<int64_t>(3, 4950));
}

TEST_CASE("two callers of one pool both get their work done") {
  ThreadPool pool(2);
  std::atomic<int64_t> total{0};
  auto caller = [&] {
    for (int k = 0; k < 2000; ++k) {
      pool.for_ranges(10, [&](int64_t begin, int64_t end, int) { total += end - begin; });
    }
  };
  std::thread other(caller);
  caller();
  other.join();
  CHECK(total == 2 * 2000 * 10);
}

TEST_CASE("an exception reaches the caller, the lowest range's first, and the pool lives on") {
  ThreadPool pool(3);
  auto fail_but_first = [](int64_t begin, int64_t, int) {
    if (begin > 0) throw std::runtime_error("range " + std::to_string(begin));
  };
  for (int round = 0; round < 50; ++round) {
    CHECK_THROWS_WITH(pool.for_ranges(3, fail_but_first), Contains("range 1"));
  }
  std::atomic<int64_t> sum{0};
  pool.for_ranges(10, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
  CHECK(sum == 10);
}

TEST_CASE("100,000 tiny launches lose nothing, spinning or sleeping") {
  ThreadPool pool(2);
  std::vector<int64_t> counts(2 * 16, 0);  // 128 bytes apart
  auto launch = [&] {
    pool.for_ranges(2, [&](int64_t, int64_t, int worker) { ++counts[worker * 16]; });
  };
  {
    const ThreadPool::Busy busy(pool);
    for (int k = 0; k < 100000; ++k) launch();
  }
  // Pauses around the moment when a worker falls asleep, where a wake could be lost.
  for (int k = 0; k < 300; ++k) {
    const double until = now_us() + 40 + k % 30;
    while (now_us() < until) {
    }
    launch();
  }
  CHECK(counts[0] == 100300);
  CHECK(counts[16] == 100300);
}

TEST_CASE("idle workers sleep, also within Busy after a while") {
  ThreadPool pool(2);
  const ThreadPool::Busy busy(pool);
  pool.for_ranges(2, [](int64_t, int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  getrusage(RUSAGE_SELF, &after);
  auto used_us = [](const rusage& r) {
    return static_cast<double>(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
  };
  CHECK(used_us(after) - used_us(before) < 30000);
}

TEST_CASE("the default pool has a worker for each allowed CPU") {
  CHECK(default_pool().workers() == allowed_cores());
  CHECK(serial_pool().workers() == 1);
  CHECK(&default_pool() == &default_pool());
  CHECK_THROWS_WITH(ThreadPool(-1), Contains("-1 threads asked for"));
  CHECK_THROWS_AS(ThreadPool(1 << 20), UserError);
}

TEST_CASE("a pool made under a narrower affinity mask has fewer workers") {
  int workers = 0;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(allowed_cpus().front(), &set);
    sched_setaffinity(0, sizeof set, &set);
    ThreadPool pool;
    workers = pool.workers();
  }).join();
  CHECK(workers == 1);
}

TEST_CASE("denormals are flushed on request, on all workers, and only then") {
  ThreadPool pool(2);
  const volatile float tiny = 1e-38f;  // the least normal number is 1.18e-38
  std::vector<float> results(2);
  auto shrink = [&] {
    pool.for_ranges(2, [&](int64_t, int64_t, int worker) { results[worker] = tiny * 0.5f; });
  };
  shrink();
  CHECK(results[0] > 0);
  CHECK(results[1] > 0);
  {
    const FlushDenormals flush;
    shrink();
  }
  CHECK(results[0] == 0);
  CHECK(results[1] == 0);
  shrink();
  CHECK(results[0] > 0);
  CHECK(results[1] > 0);
}

TEST_CASE("what a launch costs (printed, not judged)") {
  ThreadPool pool(2);
  auto nothing = [](void*, int64_t, int64_t, int32_t) {};
  auto launch_us = [&] {
    const double start = now_us();
    pool.parallel_for(2, nothing, nullptr);
    return now_us() - start;
  };
  Samples spinning, woken;
  {
    const ThreadPool::Busy busy(pool);
    for (int k = 0; k < 2000; ++k) spinning.us.push_back(launch_us());
  }
  for (int k = 0; k < 50; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    woken.us.push_back(launch_us());
  }
  std::printf("fork-join of 2 threads: %.2f us to a spinning worker, %.1f us to a sleeping one\n",
              spinning.median(), woken.median());
  CHECK(spinning.min() > 0);
}
