#include <tenon/runtime/thread_pool.h>

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <thread>

#include <tenon/runtime/denormals.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>
#include <tenon/target/target.h>

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

double cpu_us(const rusage& r) {
  return static_cast<double>(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
         static_cast<double>(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

}  // namespace

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
  CHECK(cpu_us(after) - cpu_us(before) < 30000);
}

TEST_CASE("ranges that no worker has begun are run by the caller, as that worker") {
  ThreadPool pool(2);
  int taken = 0;
  // The worker sleeps; on a busy machine it may still wake before the caller has come so far.
  for (int round = 0; round < 5000 && (round < 20 || taken == 0); ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<std::thread::id> by(2);
    pool.for_ranges(2, [&](int64_t begin, int64_t, int worker) {
      by[static_cast<size_t>(worker)] = std::this_thread::get_id();
      if (begin != worker) std::terminate();
      pool.for_ranges(3, [&](int64_t from, int64_t to, int inner) {
        if (inner != worker || from != 0 || to != 3) std::terminate();
      });
    });
    CHECK(by[0] == std::this_thread::get_id());
    if (by[1] == by[0]) ++taken;
  }
  CHECK(taken > 0);
}

TEST_CASE("a caller that waits long for a range that has begun sleeps") {
  auto thread_us = [] {
    timespec t = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
  };
  ThreadPool pool(2);
  std::atomic<bool> begun{false};
  const double before = thread_us(), start = now_us();
  pool.for_ranges(2, [&](int64_t, int64_t, int worker) {
    if (worker == 0) {
      while (!begun) std::this_thread::yield();
    } else {
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  CHECK(now_us() - start > 45000);
  CHECK(thread_us() - before < 25000);
}

TEST_CASE("launches with pauses of all lengths run every range once") {
  for (int threads : {2, 3, 7}) {
    ThreadPool pool(threads);
    std::vector<int64_t> counts(static_cast<size_t>(threads) * 16, 0);
    uint32_t seed = 1;
    for (int k = 0; k < 2000; ++k) {
      seed = seed * 1664525 + 1013904223;
      const double pause_us = static_cast<double>(seed >> 24) / 2;
      const double until = now_us() + pause_us;
      pool.for_ranges(threads, [&](int64_t, int64_t, int worker) {
        ++counts[static_cast<size_t>(worker) * 16];
      });
      while (k % 4 == 0 && now_us() < until) {
      }
    }
    for (int w = 0; w < threads; ++w) CHECK(counts[static_cast<size_t>(w) * 16] == 2000);
  }
}

TEST_CASE("two processes side by side waste little of each other's time") {
  auto cpu_us_of_processes = [](int processes) {
    std::vector<pid_t> children;
    for (int p = 0; p < processes; ++p) {
      const pid_t child = fork();
      if (child > 0) {
        children.push_back(child);
        continue;
      }
      ThreadPool pool;
      const ThreadPool::Busy busy(pool);
      for (int k = 0; k < 500; ++k) {
        pool.for_ranges(pool.workers(), [](int64_t, int64_t, int) {
          for (volatile int i = 0; i < 50000;) i = i + 1;
        });
      }
      std::_Exit(0);
    }
    double us = 0;
    for (pid_t child : children) {
      int status = 1;
      rusage used = {};
      REQUIRE(wait4(child, &status, 0, &used) == child);
      REQUIRE(status == 0);
      us += cpu_us(used);
    }
    return us;
  };
  const double alone = cpu_us_of_processes(1), both = cpu_us_of_processes(2);
  CAPTURE(alone, both);
  CHECK(both < 3 * alone);
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
  std::atomic<int> met{0};
  auto launch_us = [&] {
    const double start = now_us();
    pool.for_ranges(2, [&](int64_t, int64_t, int) {
      for (met.fetch_add(1); met.load() % 2 != 0;) std::this_thread::yield();
    });
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
