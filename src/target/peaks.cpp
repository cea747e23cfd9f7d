#include <tenon/target/peaks.h>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include <target/probe.h>
#include <target/probe_loops.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>
#include <tenon/support/hash.h>
#include <tenon/support/log.h>

namespace tenon {
namespace {

// Seconds: long beside the clock and the barrier, shorter than a scheduler's slice, so that on a
// busy machine some windows still run undisturbed.
constexpr double kWindow = 0.002;
constexpr int kFewestWindows = 20;   // a busy machine may need longer than asked for these,
constexpr double kMostOvertime = 4;  // up to so many times the time

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  // A refusal only makes the figure noisier.
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Meeting point of a fixed number of threads, reusable. Waits without giving the CPU away unless
/// the threads share one: a window counts only when all run at once.
class SpinBarrier {
 public:
  SpinBarrier(int threads, bool share_cpus) : threads_(threads), share_cpus_(share_cpus) {}
  void wait() {
    const int round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    while (round_.load(std::memory_order_acquire) == round) {
      if (share_cpus_) std::this_thread::yield();
    }
  }

 private:
  const int threads_;
  const bool share_cpus_;
  std::atomic<int> arrived_{0}, round_{0};
};

/// Repeats windows of equal work on pinned threads that start together, for `seconds`, and gives
/// the best window: all work over the time from the first start to the last end. `work(thread,
/// amount)` does `amount` units; `prepare(thread)` runs once, before the clock.
double best_rate(int threads, double seconds, const std::function<void(int)>& prepare,
                 const std::function<void(int, int64_t)>& work) {
  const std::vector<int> cpus = allowed_cpus();
  SpinBarrier barrier(threads, threads > static_cast<int>(cpus.size()));
  std::vector<double> starts(threads), ends(threads);
  std::atomic<int64_t> amount{1};
  std::atomic<bool> stop{false};
  double best = 0;  // this and the next are thread 0's alone
  int windows = 0;
  auto body = [&](int t) {
    pin_this_thread(cpus[t % cpus.size()]);
    prepare(t);
    const double begin = now();
    while (true) {
      barrier.wait();
      if (stop.load(std::memory_order_relaxed)) return;
      const int64_t n = amount.load(std::memory_order_relaxed);
      starts[t] = now();
      work(t, n);
      ends[t] = now();
      barrier.wait();
      if (t != 0) continue;
      const double took = *std::max_element(ends.begin(), ends.end()) -
                          *std::min_element(starts.begin(), starts.end());
      if (took < kWindow / 2) {  // still finding the window's amount
        amount.store(std::max(
            n + 1, static_cast<int64_t>(static_cast<double>(n) * std::min(10.0, kWindow / took))));
        continue;
      }
      best = std::max(best, static_cast<double>(n) * threads / took);
      const double limit = ++windows < kFewestWindows ? kMostOvertime * seconds : seconds;
      if (now() - begin > limit) stop.store(true, std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) pool.emplace_back(body, t);
  for (std::thread& t : pool) t.join();
  return best;
}

constexpr int64_t kSliceBytes = 1 << 20;
constexpr size_t kApart = 16;  // int64 values between two threads' own: no shared cache line

struct FreeMemory {
  void operator()(void* p) const { std::free(p); }
};

double measure_read_gbps(const ProbeLoops& loops, int threads, int64_t bytes, double seconds) {
  const int64_t slice = std::min(bytes, kSliceBytes);  // a unit of work; slices are walked in turn
  std::vector<std::unique_ptr<void, FreeMemory>> data(threads);
  std::vector<int64_t> positions(threads * kApart, 0);
  auto fill = [&](int t) {  // by the thread that reads it: first touch decides the memory node
    data[t].reset(std::aligned_alloc(4096, static_cast<size_t>((bytes + 4095) / 4096 * 4096)));
    if (data[t]) std::memset(data[t].get(), 1, static_cast<size_t>(bytes));
  };
  auto read = [&](int t, int64_t times) {
    int64_t& at = positions[t * kApart];
    for (int64_t k = 0; k < times && data[t]; ++k) {
      loops.read(static_cast<const char*>(data[t].get()) + at, slice);
      at = at + 2 * slice <= bytes ? at + slice : 0;
    }
  };
  const double rate = best_rate(threads, seconds, fill, read);
  for (auto& d : data) {
    if (!d) return 0;  // out of memory: this level was not measured
  }
  return rate * static_cast<double>(slice) * 1e-9;
}

/// A working set for each level: well inside it, and well outside the one above.
std::vector<ReadPeak> read_levels(const Target& target) {
  const int64_t mib = 1 << 20;
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const int64_t most =
      std::max(16 * mib, std::min<int64_t>(1024 * mib, physical / 4) / target.cores);
  std::vector<ReadPeak> levels = {{"L1", target.l1d_bytes / 3}, {"L2", target.l2_bytes / 4}};
  if (target.l3_bytes > 0) {
    levels.push_back(
        {"L3", std::clamp(target.l3_bytes / 4 / target.cores, 2 * target.l2_bytes, 16 * mib)});
  }
  levels.push_back({"memory", std::min(most, std::max(64 * mib, 4 * std::max(target.l2_bytes,
                                                                             target.l3_bytes)))});
  for (ReadPeak& level : levels) level.bytes = std::max<int64_t>(1, level.bytes / 1024) * 1024;
  return levels;
}

void check_runs_here(const Target& target) {
  const Target host = Target::host();
  if (target.runs_on(host)) return;
  throw UserError(
      fmt::format("peaks of {}: this machine ({}, {}) cannot run that code\n  try: target host",
                  target.name, host.name, host.cpu));
}

/// False when the folder cannot be made or written.
bool keep(const std::string& directory, const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  return !error && !write_file(path, text);
}

/// Measures the multiply-adds again, briefly, and takes what is higher: peaks that were kept from a
/// busy moment would flatter every share of peak. True when they rose by more than the noise.
bool raise(Peaks& peaks, const Target& target) {
  const double one = measure_fma_gflops(target, 1, 0.02),
               all = measure_fma_gflops(target, peaks.threads, 0.03);
  const bool rose = one > 1.03 * peaks.fma_gflops_1 || all > 1.03 * peaks.fma_gflops_all;
  peaks.fma_gflops_1 = std::max(peaks.fma_gflops_1, one);
  peaks.fma_gflops_all = std::max(peaks.fma_gflops_all, all);
  return rose;
}

std::string peaks_file_name(const Target& t) {
  std::string print = t.fingerprint();
  std::replace(print.begin(), print.end(), '/', '-');
  const uint64_t machine =
      hash_text(fmt::format("{} {} {} {}", t.cpu, t.cores, t.l2_bytes, t.l3_bytes));
  return fmt::format("peaks-{}-{}.json", print, hex64(machine).substr(0, 8));
}

/// What the file says; nothing when it cannot be read.
std::optional<Peaks> kept_peaks(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return std::nullopt;
  try {
    return Peaks::from_json(*text);
  } catch (const UserError& error) {
    log_line(1, "target", fmt::format("{} is measured anew: {}", path, error.what()));
    return std::nullopt;
  }
}

}  // namespace

std::string Peaks::to_json() const {
  nlohmann::ordered_json levels = nlohmann::ordered_json::array();
  for (const ReadPeak& r : read) {
    levels.push_back(
        {{"level", r.level}, {"bytes", r.bytes}, {"gbps_1", r.gbps_1}, {"gbps_all", r.gbps_all}});
  }
  return nlohmann::ordered_json{{"fma_gflops_1", fma_gflops_1},
                                {"fma_gflops_all", fma_gflops_all},
                                {"threads", threads},
                                {"read", levels}}
      .dump();
}

Peaks Peaks::from_json(std::string_view text) {
  Peaks peaks;
  try {
    const auto j = nlohmann::json::parse(text);
    j.at("fma_gflops_1").get_to(peaks.fma_gflops_1);
    j.at("fma_gflops_all").get_to(peaks.fma_gflops_all);
    if (!j.at("threads").is_number_integer()) throw UserError("peaks: threads is no whole number");
    j.at("threads").get_to(peaks.threads);
    for (const auto& r : j.at("read")) {
      if (!r.at("bytes").is_number_integer()) throw UserError("peaks: bytes is no whole number");
      peaks.read.push_back({r.at("level").get<std::string>(), r.at("bytes").get<int64_t>(),
                            r.at("gbps_1").get<double>(), r.at("gbps_all").get<double>()});
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("peaks: the text is not a list of peaks - {}", error.what()));
  }
  if (!(peaks.fma_gflops_1 > 0 && peaks.fma_gflops_all > 0 && peaks.threads > 0)) {
    throw UserError("peaks: rates and threads must be above 0");
  }
  return peaks;
}

std::string peaks_directory() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/tenon";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/tenon";
  return "";
}

double measure_fma_gflops(const Target& target, int threads, double seconds) {
  check_runs_here(target);
  const ProbeLoops loops = probe_loops(target.vector_bits);
  constexpr int64_t kUnit = 10000;  // iterations
  auto work = [&](int, int64_t n) { loops.fma(n * kUnit); };
  auto warm_up = [&](int) { loops.fma(kUnit); };
  return best_rate(std::max(1, threads), seconds, warm_up, work) * kUnit *
         loops.flops_per_iteration * 1e-9;
}

Peaks measure_peaks(const Target& target, double seconds) {
  check_runs_here(target);
  Peaks peaks;
  peaks.threads = target.cores;
  peaks.read = read_levels(target);
  const ProbeLoops loops = probe_loops(target.vector_bits);
  const double share =
      seconds / (4 + 2 * static_cast<double>(peaks.read.size()));  // an FMA probe gets 2 shares
  // What one thread can do, all together can too; a lower figure means that others were at work.
  const bool several = target.cores > 1;
  peaks.fma_gflops_1 = measure_fma_gflops(target, 1, 2 * share);
  const double all = several ? measure_fma_gflops(target, target.cores, 2 * share) : 0;
  peaks.fma_gflops_all = std::max(peaks.fma_gflops_1, all);
  for (ReadPeak& r : peaks.read) {
    r.gbps_1 = measure_read_gbps(loops, 1, r.bytes, share);
    r.gbps_all = several ? measure_read_gbps(loops, target.cores, r.bytes, share) : 0;
    r.gbps_all = std::max(r.gbps_1, r.gbps_all);
  }
  return peaks;
}

Peaks load_or_measure_peaks(const std::string& directory, const Target& target, double seconds) {
  if (directory.empty()) return measure_peaks(target, seconds);
  const std::string path = directory + "/" + peaks_file_name(target);
  std::optional<Peaks> peaks = kept_peaks(path);
  const bool kept = peaks.has_value();
  if (!kept) peaks = measure_peaks(target, seconds);
  if ((!kept || raise(*peaks, target)) && !keep(directory, path, peaks->to_json() + "\n")) {
    log_line(1, "target", path + " cannot be written");
  }
  return *peaks;
}

const Peaks& cached_peaks() {
  static const Peaks peaks = load_or_measure_peaks(peaks_directory(), Target::host(), 3);
  return peaks;
}

}  // namespace tenon
