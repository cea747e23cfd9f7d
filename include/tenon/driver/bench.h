#pragma once
#include <tenon/compile/recorded.h>
#include <tenon/records/lookup.h>

#include <functional>

namespace tenon {

/// One kernel under one schedule, as measured.
struct BenchRow {
  std::string kernel;
  std::string args = "{}";  ///< JSON object
  std::string target;
  int threads = 1;
  std::string schedule;  ///< "unscheduled", "default", "LOG:LINE" or "adapted from LOG:LINE"
  double median_us = 0, mad_us = 0;
  double gflops = 0;         ///< 0: the kernel counts no floating-point operations
  double peak_fraction = 0;  ///< of the measured FMA peak on as many threads
  CheckResult check = CheckResult::not_run;
  std::string reason;  ///< why the check failed, and the file that reproduces it
  int uses = 1;        ///< how many groups of a network run this kernel

  std::string to_json() const;  ///< one line
};

struct BenchOptions {
  int threads = 1;
  int rounds = 9;            ///< interleaved rounds; the figures are medians over them
  double floor_us = 20'000;  ///< a round of one kernel takes at least this long
  bool unscheduled = false;  ///< also the plain loop nest, once, for information
  bool whole_only = false;   ///< a network as a whole, without its kernels one by one
  std::function<void(size_t done, size_t all)> progress = {};  ///< of a network's kernels
  double peak_gflops = 0;                                      ///< 0: measured in this run
};

/// The task under each schedule, interleaved round by round on the same buffers, each checked
/// against the unscheduled kernel on random inputs first.
std::vector<BenchRow> bench(const Task& task, const std::vector<NamedTrace>& schedules,
                            const BenchOptions& options);

/// Says of an adapted trace whether it runs here and gives the unscheduled kernel's outputs on
/// sample inputs, faster than the default. Quick: some milliseconds a kernel.
TraceCheck check_adapted(int threads);

/// Default and, where `store` has one, what it says of the task (recorded_schedule).
std::vector<NamedTrace> default_and_best(const Task& task, const RecordStore& store, int threads);

/// A table of rows for people.
std::string bench_table(const std::vector<BenchRow>& rows);

}  // namespace tenon
