#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <tenon/runtime/kernel_abi.h>

namespace tenon {

/// Persistent workers for parallel loops: fork-join by an atomic epoch. The calling thread is
/// worker 0, so a pool of 1 has no thread of its own. Workers inherit the affinity mask of the
/// thread that makes the pool and are not pinned. Each launch hands the caller's MXCSR (rounding,
/// denormals) on to the workers.
///
/// A loop started from inside a task of the same pool runs serially on that worker; so does one
/// that another thread starts while the pool is at work (as worker 0: workspaces belong to a
/// caller). After a fork the child has no workers: use pools made in the child.
class ThreadPool {
 public:
  /// `threads` 0 means allowed_cores().
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const { return static_cast<int>(threads_.size()) + 1; }

  /// Splits [0, count) into contiguous ranges, one a worker, sizes differing by at most 1, and
  /// returns when all are done. `task` must not throw (std::terminate).
  void parallel_for(int64_t count, tenon_task task, void* context);

  /// parallel_for with the signature that kernels call; `pool` is a ThreadPool*.
  static void parallel_for_entry(void* pool, int64_t count, tenon_task task, void* context);

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

  void worker_loop(int worker);
  uint32_t await_epoch_after(uint32_t seen);
  void run_range(int worker) noexcept;
  void start_epoch();
  void join_workers() const;

  // Each on a cache line of its own: workers poll epoch_, the caller polls pending_.
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int32_t> pending_{0};  // workers that have not finished this epoch
  alignas(64) std::atomic<int32_t> sleepers_{0};
  std::atomic<int32_t> busy_{0};
  std::atomic<bool> launching_{false};
  std::atomic<bool> stop_{false};
  Job job_;               // written before epoch_ moves, read after it was seen to move
  bool crowded_ = false;  // more workers than CPUs: a spinning thread must give way
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
