#include "autotvm/measure/cpu_use.h"

#include <sys/resource.h>
#include <tenon/runtime/timer.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace tenon {
namespace {

double us_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
}

/// How long the threads of this process were ready to run while others had the CPU; schedstat's
/// second number, in ns. 0 where the system does not count it.
double waited_us() {
  double out = 0;
  std::error_code problem;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", problem)) {
    std::ifstream file(thread.path() / "schedstat");
    double ran = 0, waited = 0;
    if (file >> ran >> waited) out += waited * 1e-3;
  }
  return out;
}

/// The first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks.
double machine_us() {
  std::ifstream file("/proc/stat");
  std::string word;
  double out = 0, ticks = 0;
  file >> word;
  for (int k = 0; k < 8 && file >> ticks; ++k) {
    const bool resting = k == 3 || k == 4;
    if (!resting) out += ticks;
  }
  return out * 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

CpuWatch::Counters CpuWatch::now() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return {now_us(), us_of(used.ru_utime) + us_of(used.ru_stime), waited_us(), machine_us()};
}

CpuWatch::CpuWatch() : start_(now()) {}

CpuUse CpuWatch::stop() const {
  const Counters end = now();
  const double machine = end.machine_us - start_.machine_us, own = end.own_us - start_.own_us;
  // Ticks are coarse: single differences may be negative, sums of them are right.
  return {end.wall_us - start_.wall_us, std::max(0.0, end.waited_us - start_.waited_us),
          machine - own};
}

}  // namespace tenon
