#pragma once
#include <functional>
#include <vector>

namespace tenon {

/// Monotonic clock, microseconds since some fixed moment.
double now_us();

/// Timings of one thing, in microseconds a call, in the order they were taken.
struct Samples {
  std::vector<double> us;

  // All 0 when there are no samples.
  double median() const;
  double mad() const;  ///< median absolute deviation from the median
  double min() const;
};

/// Calls `run` once to warm up, then takes `repeats` samples of so many calls each that every
/// sample lasts at least `floor_us`.
Samples time_repeatedly(const std::function<void()>& run, double floor_us, int repeats);

}  // namespace tenon
