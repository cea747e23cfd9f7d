#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <tenon/runtime/kernel_abi.h>
#include <tenon/runtime/lent_pool.h>

namespace tenon {

/// Persistent workers for parallel loops: fork-join by an atomic epoch. The calling thread is
/// worker 0, so a pool of 1 has no thread of its own. Workers inherit the affinity mask of the
/// thread that makes the pool and are not pinned. Each launch hands the caller's MXCSR (rounding,
/// denormals) on to the workers.
///
/// The caller never waits for a worker that has not begun: when its own range is done it runs those
/// that nobody has taken, under their worker's number. So a worker that sleeps, or whose CPU
/// another process has, costs at most the time its range takes. Who waits spins a short while, not
/// where the awaited one needs the same CPU, then sleeps.
///
/// A loop started from inside a task of the same pool runs serially on that worker; so does one
/// that another thread starts while the pool is at work (as worker 0: workspaces belong to a
/// caller). After a fork the child has no workers: use pools made in the child.
class ThreadPool {
 public:
  /// `threads` 0 means allowed_cores().
  explicit ThreadPool(int threads = 0);
  /// No threads of its own: its loops run on someone else's (lent_pool.h). UserError for a pool
  /// without a function or of a number of workers that is not in 1 to 1024.
  explicit ThreadPool(const LentPool& lent);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const { return workers_; }

  /// Splits [0, count) into contiguous ranges, one a worker, sizes differing by at most 1, and
  /// returns when all are done. `task` must not throw (std::terminate). Of a lent pool: UserError
  /// when its owner's function throws or did not run every range once.
  void parallel_for(int64_t count, tenon_task task, void* context);

  /// parallel_for with the signature that kernels call; `pool` is a ThreadPool*. Generated code
  /// cannot pass an exception on: it waits for the next rethrow_failure() of this thread.
  static void parallel_for_entry(void* pool, int64_t count, tenon_task task, void* context);
  static void rethrow_failure();

  /// f(begin, end, worker) on ranges that cover [0, count). When ranges throw, the exception of the
  /// lowest range is rethrown here after all have ended.
  template <class F>
  void for_ranges(int64_t count, F&& f);

  /// While one lives, idle workers spin (1 ms after the last work) instead of sleeping: a wake from
  /// sleep costs 40 to 95 us on a virtual machine, a hand-over to a spinning worker less than 1.
  /// For the time a network or a timed loop runs.
  class Busy {
   public:
    explicit Busy(ThreadPool& pool) : pool_(pool) {
      pool_.busy_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Busy() { pool_.busy_.fetch_sub(1, std::memory_order_relaxed); }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    ThreadPool& pool_;
  };

 private:
  struct Job {
    tenon_task task = nullptr;
    void* context = nullptr;
    int64_t count = 0;
    uint32_t mxcsr = 0;
  };

  /// Where a worker and the caller agree on who runs the worker's range of epoch e:
  ///
  ///     4e - 4  open  ->  4e - 2  taken by the worker  (->  4e - 1  the caller sleeps)  ->  4e
  ///     done
  ///                   ->  4e      taken and done by the caller
  struct alignas(64) Seat {
    std::atomic<uint32_t> word{0};
    std::atomic<int> cpu{-1};  ///< the worker's when it took the range
  };

  void worker_loop(int worker);
  uint32_t await_epoch_after(uint32_t seen, double patience_us);
  void run_range(const Job& job, int worker) noexcept;
  uint32_t start_epoch();
  void run_open_ranges(uint32_t epoch);
  void await_workers(uint32_t epoch);
  std::exception_ptr run_lent(const Job& job) noexcept;

  int workers_ = 1;
  std::optional<LentPool> lent_;
  bool crowded_ = false;  // more workers than CPUs: who waits must give way
  // Each on a cache line of its own: workers poll epoch_ and now and then busy_.
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int32_t> busy_{0};
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> caller_cpu_{-1};  // of the last launch
  alignas(64) std::atomic<bool> launching_{false};
  Job job_;                  // written before epoch_ moves, read by who has taken a range
  std::vector<Seat> seats_;  // of workers 1 and up
  std::vector<std::thread> threads_;
};

/// allowed_cores() workers, made at the first call.
ThreadPool& default_pool();

/// One worker: everything runs on the caller's thread.
ThreadPool& serial_pool();

template <class F>
void ThreadPool::for_ranges(int64_t count, F&& f) {
  struct Context {
    F& f;
    std::mutex mutex;
    int64_t first_failed = 0;
    std::exception_ptr failure;
  } context{f, {}, 0, nullptr};
  auto task = [](void* opaque, int64_t begin, int64_t end, int32_t worker) {
    Context& c = *static_cast<Context*>(opaque);
    try {
      c.f(begin, end, worker);
    } catch (...) {
      std::lock_guard<std::mutex> lock(c.mutex);
      if (c.failure && begin > c.first_failed) return;
      c.failure = std::current_exception();
      c.first_failed = begin;
    }
  };
  parallel_for(count, task, &context);
  if (context.failure) std::rethrow_exception(context.failure);
}

}  // namespace tenon
