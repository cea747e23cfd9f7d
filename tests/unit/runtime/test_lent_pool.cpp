#include <tenon/runtime/lent_pool.h>

#include <immintrin.h>

#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>

#include <tenon/runtime/denormals.h>
#include <tenon/runtime/module.h>
#include <tenon/support/error.h>

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

/// A pool as another program may have one: a thread a piece.
void on_threads(int n, LentTask task) {
  std::vector<std::thread> threads;
  for (int k = 0; k < n; ++k) threads.emplace_back([=] { task(k); });
  for (std::thread& t : threads) t.join();
}

/// Everything on the thread that asks, last piece first.
void in_line(int n, LentTask task) {
  for (int k = n - 1; k >= 0; --k) task(k);
}

/// out[i] = worker that wrote it, in parallel over all of out; then a second loop adds 10.
int32_t mark(void* const* args, const int64_t*, void*, tenon_parallel_for parallel_for,
             void* pool) {
  auto first = [](void* out, int64_t begin, int64_t end, int32_t worker) {
    for (int64_t k = begin; k < end; ++k) static_cast<int32_t*>(out)[k] = worker;
  };
  auto second = [](void* out, int64_t begin, int64_t end, int32_t) {
    for (int64_t k = begin; k < end; ++k) static_cast<int32_t*>(out)[k] += 10;
  };
  parallel_for(pool, 10, first, args[0]);
  parallel_for(pool, 10, second, args[0]);
  return TENON_OK;
}

std::vector<double> marked_by(ThreadPool& pool) {
  Module m;
  m.name = "mark";
  m.entry = mark;
  m.parameters = {{"out", i32, {10}, true}};
  Workspace workspace;
  const Array out = zeros(i32, {10});
  call(m, std::vector<Array>{out}, pool, workspace);
  return out.to_doubles();
}

}  // namespace

TEST_CASE("a kernel runs on a lent pool as on one of our own") {
  auto threads = [](int n, LentTask task) { on_threads(n, task); };
  auto line = [](int n, LentTask task) { in_line(n, task); };
  for (int workers : {1, 2, 3, 10, 16}) {
    ThreadPool own(workers), lent(lend(workers, threads)), serial(lend(workers, line));
    CHECK(lent.workers() == workers);
    const std::vector<double> expected = marked_by(own);
    CHECK(marked_by(lent) == expected);
    CHECK(marked_by(serial) == expected);
  }
}

TEST_CASE("a nested loop on a lent pool runs on the piece's thread") {
  auto run = [](int n, LentTask task) { on_threads(n, task); };
  ThreadPool pool(lend(3, run));
  std::atomic<int> strangers{0};
  pool.for_ranges(3, [&](int64_t, int64_t, int outer) {
    pool.for_ranges(5, [&](int64_t begin, int64_t end, int inner) {
      if (inner != outer || begin != 0 || end != 5) ++strangers;
    });
  });
  CHECK(strangers == 0);
}

TEST_CASE("a task's exception stays out of the lent pool's threads") {
  auto run = [](int n, LentTask task) { on_threads(n, task); };
  ThreadPool pool(lend(3, run));
  CHECK_THROWS_WITH(pool.for_ranges(3,
                                    [](int64_t begin, int64_t, int) {
                                      if (begin > 0)
                                        throw std::runtime_error("range " + std::to_string(begin));
                                    }),
                    "range 1");
}

TEST_CASE("what the owner of a lent pool does wrong is an error of the call") {
  struct Wrong {
    const char* what;
    void (*run)(void*, int, LentTask);
    const char* message;
  };
  const Wrong rows[] = {
      {"throws", [](void*, int, LentTask) { throw std::runtime_error("pool is closed"); },
       "its function threw: pool is closed"},
      {"throws no exception", [](void*, int, LentTask) { throw 7; }, "no std::exception"},
      {"leaves one out", [](void*, int n, LentTask task) { in_line(n - 1, task); },
       "it returned when 2 of 3 pieces had ended"},
      {"runs one twice",
       [](void*, int n, LentTask task) {
         task(1);
         in_line(n, task);
       },
       "piece 1 was run twice"},
      {"runs one too many", [](void*, int n, LentTask task) { in_line(n + 1, task); },
       "piece 3 was run, of 3"},
      {"runs one of before", [](void*, int n, LentTask task) { in_line(n, task), task(-1); },
       "piece -1 was run, of 3"}};
  for (const Wrong& row : rows) {
    CAPTURE(row.what);
    ThreadPool pool(LentPool{3, nullptr, row.run});
    CHECK_THROWS_AS(marked_by(pool), UserError);
    CHECK_THROWS_WITH(marked_by(pool), Contains("lent pool: ") && Contains(row.message) &&
                                           Contains("once for each k in [0, n)"));
    CHECK_THROWS_WITH(pool.for_ranges(3, [](int64_t, int64_t, int) {}), Contains(row.message));
  }
  // Nothing of it is left for the next call of this thread.
  CHECK_NOTHROW(marked_by(serial_pool()));
}

TEST_CASE("a lent thread flushes denormals as the caller does, and keeps its own setting") {
  const volatile float tiny = 1e-38f;
  bool kept = true;
  auto run = [&](int n, LentTask task) {
    std::thread([&] {
      _mm_setcsr(0x1f80);  // a new thread has its maker's setting: this one's are the usual
      in_line(n, task);
      kept = kept && tiny * 0.5f > 0;
    }).join();
  };
  ThreadPool pool(lend(2, run));
  std::vector<float> results(2);
  const FlushDenormals flush;
  pool.for_ranges(
      2, [&](int64_t, int64_t, int worker) { results[static_cast<size_t>(worker)] = tiny * 0.5f; });
  CHECK(results == std::vector<float>{0, 0});
  CHECK(kept);
}

TEST_CASE("a lent pool without a function or workers is refused") {
  auto run = [](int n, LentTask task) { in_line(n, task); };
  CHECK_THROWS_WITH(ThreadPool(LentPool{}), Contains("has 1 workers and no function to run"));
  CHECK_THROWS_WITH(ThreadPool(lend(0, run)), Contains("has 0 workers") && Contains("try:"));
  CHECK_THROWS_WITH(ThreadPool(lend(-2, run)), Contains("-2 threads asked for"));
  CHECK_THROWS_WITH(ThreadPool(lend(5000, run)), Contains("1 to 1024 are possible"));
}
