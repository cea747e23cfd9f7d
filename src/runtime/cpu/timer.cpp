#include <tenon/runtime/timer.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <tenon/support/stats.h>

namespace tenon {
namespace {

/// Microseconds that `calls` calls take together.
double time_calls(const std::function<void()>& run, int64_t calls) {
  const double start = now_us();
  for (int64_t k = 0; k < calls; ++k) run();
  return now_us() - start;
}

}  // namespace

double now_us() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::micro>(time).count();
}

double Samples::median() const { return us.empty() ? 0 : tenon::median(us); }

double Samples::mad() const { return us.empty() ? 0 : median_deviation(us); }

double Samples::min() const { return us.empty() ? 0 : *std::min_element(us.begin(), us.end()); }

Samples time_repeatedly(const std::function<void()>& run, double floor_us, int repeats) {
  run();
  Samples samples;
  for (int64_t calls = 1; static_cast<int>(samples.us.size()) < repeats;) {
    const double took = time_calls(run, calls);
    if (took >= floor_us) {
      samples.us.push_back(took / static_cast<double>(calls));
      continue;
    }
    // Too few calls (an interruption may have hidden that so far): begin again with more.
    samples.us.clear();
    const double growth = took > 0 ? std::min(10.0, 1.2 * floor_us / took) : 10;
    calls = std::max(calls + 1, static_cast<int64_t>(static_cast<double>(calls) * growth));
  }
  return samples;
}

}  // namespace tenon
