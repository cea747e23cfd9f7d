#include <tenon/runtime/thread_pool.h>

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>
#include <tenon/target/target.h>

namespace tenon {
namespace {

constexpr double kBusySpinUs =
    1000;  // within Busy: outlasts a serial operator between two parallel ones
constexpr double kIdleSpinUs =
    50;  // else: bridges back-to-back calls and is over before anyone minds
constexpr double kPatienceUs =
    1000;  // then a waiting caller gives way, in case a worker needs its CPU
constexpr int kMostThreads = 1024;

/// What this thread is doing for a pool, so that a nested loop knows.
struct Role {
  const ThreadPool* pool = nullptr;
  int worker = 0;
};
thread_local Role this_role;

struct Range {
  int64_t begin, end;
};

/// Range `worker` of [0, count) split among `workers`: the first count % workers are one longer.
Range range_of(int64_t count, int workers, int worker) {
  const int64_t each = count / workers, longer = count % workers;
  const int64_t begin = each * worker + std::min<int64_t>(worker, longer);
  return {begin, begin + each + (worker < longer ? 1 : 0)};
}

// The low six bits of MXCSR are sticky exception flags, each thread's own.
constexpr uint32_t kControlBits = 0xffc0;

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof word == 4 && std::atomic<uint32_t>::is_always_lock_free);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int cores = allowed_cores();
  if (threads < 0 || threads > kMostThreads) {
    throw UserError(fmt::format(
        "thread pool: {} threads asked for, 1 to {} are possible\n  this process may use {} CPUs",
        threads, kMostThreads, cores));
  }
  const int workers = threads == 0 ? cores : threads;
  crowded_ = workers > cores;
  for (int w = 1; w < workers; ++w) threads_.emplace_back([this, w] { worker_loop(w); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  start_epoch();
  for (std::thread& t : threads_) t.join();
}

void ThreadPool::start_epoch() {
  // Sequentially consistent on both sides: a worker counts itself as a sleeper and then looks at
  // the epoch, we move the epoch and then look for sleepers, so one of the two sees the other.
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex(epoch_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

uint32_t ThreadPool::await_epoch_after(uint32_t seen) {
  const double start = now_us();
  for (int spins = 1;; ++spins) {
    const uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if (epoch != seen) return epoch;
    _mm_pause();
    if (spins % 16 != 0) continue;  // the clock costs as much as a pause
    if (crowded_) sched_yield();
    const double limit = busy_.load(std::memory_order_relaxed) > 0 ? kBusySpinUs : kIdleSpinUs;
    if (now_us() - start < limit) continue;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (epoch_.load(std::memory_order_seq_cst) == seen) futex(epoch_, FUTEX_WAIT_PRIVATE, seen);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void ThreadPool::run_range(int worker) noexcept {
  const Range range = range_of(job_.count, workers(), worker);
  if (range.begin == range.end) return;
  const Role before = this_role;
  this_role = {this, worker};
  job_.task(job_.context, range.begin, range.end, worker);
  this_role = before;
}

void ThreadPool::worker_loop(int worker) {
  for (uint32_t seen = 0;;) {
    seen = await_epoch_after(seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    if ((_mm_getcsr() & kControlBits) != (job_.mxcsr & kControlBits)) _mm_setcsr(job_.mxcsr);
    run_range(worker);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::join_workers() const {
  double start = 0;
  for (int spins = 1; pending_.load(std::memory_order_acquire) > 0; ++spins) {
    _mm_pause();
    if (crowded_ && spins > 16) sched_yield();
    if (spins % 64 != 0) continue;
    if (start == 0) start = now_us();
    if (now_us() - start > kPatienceUs) sched_yield();
  }
}

void ThreadPool::parallel_for(int64_t count, tenon_task task, void* context) {
  if (count <= 0) return;
  const bool nested = this_role.pool == this;
  if (nested || threads_.empty() || count == 1 ||
      launching_.exchange(true, std::memory_order_acquire)) {
    const Role before = this_role;
    this_role = {this, nested ? before.worker : 0};
    [&]() noexcept { task(context, 0, count, this_role.worker); }();
    this_role = before;
    return;
  }
  job_ = {task, context, count, _mm_getcsr()};
  pending_.store(static_cast<int32_t>(threads_.size()), std::memory_order_relaxed);
  start_epoch();
  run_range(0);
  join_workers();
  launching_.store(false, std::memory_order_release);
}

void ThreadPool::parallel_for_entry(void* pool, int64_t count, tenon_task task, void* context) {
  static_cast<ThreadPool*>(pool)->parallel_for(count, task, context);
}

ThreadPool& default_pool() {
  static ThreadPool pool;
  return pool;
}

ThreadPool& serial_pool() {
  static ThreadPool pool(1);
  return pool;
}

}  // namespace tenon
