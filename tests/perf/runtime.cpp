// What the runtime costs: a checked call beside the raw entry of the same kernel, and a fork-join
// of two threads. Figures are printed, not judged.
//
//   ninja -C build perf_runtime && build/bin/perf_runtime
#include <fmt/format.h>
#include <tenon/driver/driver.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>

#include <immintrin.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>

#include "../unit/graph/counted_malloc.h"

namespace {

using namespace tenon;

/// Nanoseconds of one call: the median of 41 samples of at least 200 us, interleaved.
template <class... Fs>
std::vector<double> interleaved_ns(const Fs&... fs) {
  std::vector<Samples> samples(sizeof...(fs));
  for (int round = 0; round < 41; ++round) {
    size_t k = 0;
    auto one = [&](const auto& f) {
      const Samples s = time_repeatedly(f, 200, 1);
      samples[k++].us.push_back(s.us[0]);
    };
    (one(fs), ...);
  }
  std::vector<double> ns;
  for (const Samples& s : samples) ns.push_back(s.median() * 1e3);
  return ns;
}

/// The kernel of one thread, by its bare entry, by run() on a prepared list, by operator().
void checked_call(int64_t n) {
  Target target = Target::host();
  target.cores = 1;
  const std::string size = std::to_string(n);
  const Task task = operator_task({"matmul", "m=" + size, "n=" + size, "k=" + size}, target);
  const Kernel kernel = compile(task, default_schedule(task).trace());
  const Array a = random(f32, {n, n}, 1), b = random(f32, {n, n}, 2), c = zeros(f32, {n, n});
  const std::vector<Array> list = {a, b, c};
  ThreadPool& pool = default_pool();
  void* const pointers[] = {a.raw(), b.raw(), c.raw()};
  Workspace workspace;
  void* const scratch = workspace.reserve(kernel.module().workspace_total(pool.workers()));
  const tenon_kernel entry = kernel.module().entry;
  auto raw = [&] { entry(pointers, nullptr, scratch, ThreadPool::parallel_for_entry, &pool); };
  auto run = [&] { kernel.run(list, pool); };
  auto call = [&] { kernel(a, b, c); };
  const std::vector<double> ns = interleaved_ns(raw, run, call);
  const int64_t before = allocation_count();
  call();
  fmt::print(
      "matmul {0}x{0}x{0}: raw entry {1:.1f} ns, run(list, pool) {2:+.1f} ns, "
      "kernel(a, b, c) {3:+.1f} ns, {4} allocations a call\n",
      n, ns[0], ns[1] - ns[0], ns[2] - ns[0], allocation_count() - before);
}

/// Another process that never rests, from construction to destruction.
class Neighbour {
 public:
  Neighbour(const std::vector<int>& cpus, int nice, bool realtime) : child_(fork()) {
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : cpus) CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    sched_param parameter{};
    parameter.sched_priority = realtime ? 1 : 0;
    sched_setscheduler(0, realtime ? SCHED_RR : SCHED_OTHER, &parameter);
    if (setpriority(PRIO_PROCESS, 0, nice) != 0) std::_Exit(1);
    for (volatile int64_t k = 0;;) k = k + 1;
  }
  ~Neighbour() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  pid_t child_;
};

void spin_us(double us) {
  for (const double end = now_us() + us; now_us() < end;) {
  }
}

/// The bare hand-over: nobody goes on before all have come.
void meet(std::atomic<int>& met, int workers) {
  for (met.fetch_add(1); met.load() % workers != 0;) _mm_pause();
}

/// Fork-joins for three tenths of a second, as a network or a timed loop makes them.
void fork_join(const char* around, double each_us) {
  ThreadPool pool;
  const ThreadPool::Busy busy(pool);
  std::atomic<int> met{0};
  auto task = [&](int64_t, int64_t, int32_t) {
    if (each_us > 0)
      spin_us(each_us);
    else
      meet(met, pool.workers());
  };
  std::vector<double> us;
  us.reserve(1 << 20);
  for (const double end = now_us() + 3e5; now_us() < end && us.size() < us.capacity();) {
    const double start = now_us();
    pool.for_ranges(pool.workers(), task);
    us.push_back(now_us() - start);
  }
  double sum = 0;
  for (double one : us) sum += one;
  std::sort(us.begin(), us.end());
  const auto at = [&](double share) { return us[static_cast<size_t>(share * us.size())]; };
  fmt::print(
      "fork-join of {} threads, {:3.0f} us each, {:27}: median {:8.2f} us, mean {:8.2f}, "
      "99% {:8.2f}, most {:8.1f}\n",
      pool.workers(), each_us, around, at(0.5), sum / us.size(), at(0.99), us.back());
}

void fork_joins() {
  const std::vector<int> cpus = allowed_cpus();
  fork_join("alone", 0);
  for (double us : {2.0, 20.0, 300.0}) {
    fork_join("alone", us);
    {
      const Neighbour on_all(cpus, 19, false);
      fork_join("a neighbour of nice 19", us);
    }
    {
      const Neighbour on_last({cpus.back()}, 0, false);
      fork_join("a neighbour on the last CPU", us);
    }
    {
      const Neighbour on_last({cpus.back()}, 0, true);
      fork_join("one of SCHED_RR on it", us);
    }
  }
}

}  // namespace

/// "perf_runtime": all; "perf_runtime calls" or "perf_runtime joins": that alone.
int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what != "joins")
    for (int64_t n : {8, 16, 32}) checked_call(n);
  if (what != "calls") fork_joins();
}
