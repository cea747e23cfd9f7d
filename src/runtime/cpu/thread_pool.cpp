#include <tenon/runtime/thread_pool.h>

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>
#include <tenon/target/target.h>

namespace tenon {
namespace {

// Workers wait for the next loop by spinning, then sleep: a wake costs 40 to 95 us.
constexpr double kBusySpinUs = 1000;  // within Busy: outlasts a serial operator between two loops
constexpr double kIdleSpinUs = 50;    // else: bridges back-to-back calls, over before anyone minds
// The caller waits for ranges that have begun: as long as a wake costs, for a worker that shares
// its CPU needs the caller to sleep.
constexpr double kCallerSpinUs = 100;
constexpr double kCrowdedSpinUs = 2;
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

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof word == 4 && std::atomic<uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, nullptr, nullptr,
                 0);
}

/// Tells when so much time has passed since its first question.
class Patience {
 public:
  /// To be asked once a spin; looks now and then, since the clock costs as much as a pause. At once
  /// where the one that is waited for was last seen on this thread's CPU.
  bool is_over(double us, const std::atomic<int>& awaited_cpu) {
    _mm_pause();
    if (++spins_ % 16 != 0) return false;
    if (sched_getcpu() == awaited_cpu.load(std::memory_order_relaxed)) return true;
    const double now = now_us();
    if (start_ == 0) start_ = now;
    return now - start_ >= us;
  }

 private:
  int spins_ = 0;
  double start_ = 0;
};

/// An exception on its way round generated code.
thread_local std::exception_ptr escaped;

void check_workers(int workers) {
  if (workers >= 0 && workers <= kMostThreads) return;
  throw UserError(fmt::format(
      "thread pool: {} threads asked for, 1 to {} are possible\n  this process may use {} CPUs",
      workers, kMostThreads, allowed_cores()));
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  check_workers(threads);
  const int cores = allowed_cores();
  workers_ = threads == 0 ? cores : threads;
  crowded_ = workers_ > cores;
  seats_ = std::vector<Seat>(static_cast<size_t>(workers_ - 1));
  for (int w = 1; w < workers_; ++w) threads_.emplace_back([this, w] { worker_loop(w); });
}

ThreadPool::ThreadPool(const LentPool& lent) : workers_(lent.workers), lent_(lent) {
  check_workers(lent.workers);
  if (!lent.run || lent.workers == 0)
    throw UserError(
        fmt::format("thread pool: the pool lent has {} workers and {} function to run\n"
                    "  try: lend(workers, function), one worker or more",
                    lent.workers, lent.run ? "a" : "no"));
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  start_epoch();
  for (std::thread& t : threads_) t.join();
}

uint32_t ThreadPool::start_epoch() {
  // Sequentially consistent on both sides: a worker counts itself as a sleeper and then looks at
  // the epoch, we move the epoch and then look for sleepers, so one of the two sees the other.
  const uint32_t epoch = epoch_.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    // Who is woken is no sleeper any more, also before it has a CPU.
    const long woken = futex(epoch_, FUTEX_WAKE_PRIVATE, INT_MAX);
    sleepers_.fetch_sub(static_cast<int32_t>(woken), std::memory_order_relaxed);
  }
  return epoch;
}

uint32_t ThreadPool::await_epoch_after(uint32_t seen, double patience_us) {
  for (Patience patience;;) {
    const uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if (epoch != seen) return epoch;
    const bool busy = busy_.load(std::memory_order_relaxed) > 0;
    const double us = crowded_ ? kCrowdedSpinUs : busy ? patience_us : kIdleSpinUs;
    if (!patience.is_over(us, caller_cpu_)) continue;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (epoch_.load(std::memory_order_seq_cst) != seen ||
        futex(epoch_, FUTEX_WAIT_PRIVATE, seen) != 0)
      sleepers_.fetch_sub(1, std::memory_order_relaxed);  // nobody woke us
  }
}

void ThreadPool::run_range(const Job& job, int worker) noexcept {
  const Range range = range_of(job.count, workers_, worker);
  if (range.begin == range.end) return;
  const Role before = this_role;
  this_role = {this, worker};
  job.task(job.context, range.begin, range.end, worker);
  this_role = before;
}

void ThreadPool::worker_loop(int worker) {
  Seat& seat = seats_[static_cast<size_t>(worker - 1)];
  double patience_us = kBusySpinUs;
  for (uint32_t epoch = 0;;) {
    epoch = await_epoch_after(epoch, patience_us);
    if (stop_.load(std::memory_order_relaxed)) return;
    uint32_t open = 4 * epoch - 4;
    if (!seat.word.compare_exchange_strong(open, 4 * epoch - 2, std::memory_order_acq_rel)) {
      // Too late: perhaps we only take a CPU from another. Wait less.
      patience_us = std::max(patience_us / 2, kIdleSpinUs);
      continue;
    }
    patience_us = std::min(patience_us * 2, kBusySpinUs);
    seat.cpu.store(sched_getcpu(), std::memory_order_relaxed);
    if ((_mm_getcsr() & kControlBits) != (job_.mxcsr & kControlBits)) _mm_setcsr(job_.mxcsr);
    run_range(job_, worker);
    const uint32_t before = seat.word.exchange(4 * epoch, std::memory_order_acq_rel);
    if (before == 4 * epoch - 1) futex(seat.word, FUTEX_WAKE_PRIVATE, 1);
  }
}

void ThreadPool::run_open_ranges(uint32_t epoch) {
  for (size_t s = 0; s < seats_.size(); ++s) {
    uint32_t open = 4 * epoch - 4;
    if (seats_[s].word.load(std::memory_order_relaxed) == open &&
        seats_[s].word.compare_exchange_strong(open, 4 * epoch, std::memory_order_acq_rel))
      run_range(job_, static_cast<int>(s) + 1);
  }
}

void ThreadPool::await_workers(uint32_t epoch) {
  Patience patience;
  for (Seat& seat : seats_) {
    for (;;) {
      uint32_t word = seat.word.load(std::memory_order_acquire);
      if (word == 4 * epoch) break;
      if (!patience.is_over(crowded_ ? kCrowdedSpinUs : kCallerSpinUs, seat.cpu)) continue;
      if (word == 4 * epoch - 1 ||
          seat.word.compare_exchange_strong(word, 4 * epoch - 1, std::memory_order_acq_rel))
        futex(seat.word, FUTEX_WAIT_PRIVATE, 4 * epoch - 1);
    }
  }
}

void ThreadPool::parallel_for(int64_t count, tenon_task task, void* context) {
  if (count <= 0) return;
  const bool nested = this_role.pool == this;
  if (nested || workers_ == 1 || count == 1 ||
      launching_.exchange(true, std::memory_order_acquire)) {
    const Role before = this_role;
    this_role = {this, nested ? before.worker : 0};
    [&]() noexcept { task(context, 0, count, this_role.worker); }();
    this_role = before;
    return;
  }
  job_ = {task, context, count, _mm_getcsr()};
  if (lent_) {
    const std::exception_ptr failure = run_lent(job_);
    launching_.store(false, std::memory_order_release);
    if (failure) std::rethrow_exception(failure);
    return;
  }
  // Written when it changes: workers keep reading this cache line.
  if (const int cpu = sched_getcpu(); cpu != caller_cpu_.load(std::memory_order_relaxed))
    caller_cpu_.store(cpu, std::memory_order_relaxed);
  const uint32_t epoch = start_epoch();
  run_range(job_, 0);
  run_open_ranges(epoch);
  await_workers(epoch);
  launching_.store(false, std::memory_order_release);
}

void ThreadPool::parallel_for_entry(void* pool, int64_t count, tenon_task task, void* context) {
  try {
    static_cast<ThreadPool*>(pool)->parallel_for(count, task, context);
  } catch (...) {
    escaped = std::current_exception();
  }
}

void ThreadPool::rethrow_failure() {
  if (escaped) std::rethrow_exception(std::exchange(escaped, nullptr));
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
