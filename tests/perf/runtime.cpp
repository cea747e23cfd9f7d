// What the runtime costs: a checked call beside the raw entry of the same kernel, and a fork-join
// of two threads. Figures are printed, not judged.
//
//   ninja -C build perf_runtime && build/bin/perf_runtime
#include <fmt/format.h>
#include <tenon/driver/driver.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations{0};

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes > 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

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
  const int64_t before = allocations;
  call();
  fmt::print(
      "matmul {0}x{0}x{0}: raw entry {1:.1f} ns, run(list, pool) {2:+.1f} ns, "
      "kernel(a, b, c) {3:+.1f} ns, {4} allocations a call\n",
      n, ns[0], ns[1] - ns[0], ns[2] - ns[0], allocations - before);
}

}  // namespace

int main() {
  for (int64_t n : {8, 16, 32}) checked_call(n);
}
