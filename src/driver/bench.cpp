#include <tenon/autotvm/verify.h>
#include <tenon/driver/bench.h>
#include <tenon/driver/failure.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>
#include <tenon/target/peaks.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "driver/require_device.h"

namespace tenon {
namespace {

constexpr uint64_t kInputSeed = 20;

// A schedule under measurement: its kernel, its own arguments (inputs shared, outputs private) and
// samples.
struct Entry {
  BenchRow row;
  Kernel kernel;
  std::vector<Array> arguments;
  Samples samples;
};

std::vector<Array> with_own_outputs(const Kernel& kernel, const std::vector<Array>& arguments) {
  std::vector<Array> out = arguments;
  const std::vector<Parameter>& parameters = kernel.module().parameters;
  for (size_t k = 0; k < out.size(); ++k) {
    if (parameters[k].is_output) out[k] = arguments[k].copy();
  }
  return out;
}

void take_round(Entry& entry, ThreadPool& pool, double floor_us) {
  const ThreadPool::Busy busy(pool);
  const Samples round =
      time_repeatedly([&] { entry.kernel.run(entry.arguments, pool); }, floor_us, 1);
  entry.samples.us.insert(entry.samples.us.end(), round.us.begin(), round.us.end());
}

Entry make_entry(const Task& task, const NamedTrace& schedule, const std::vector<Array>& arguments,
                 const std::vector<Array>& expected, ThreadPool& pool) {
  Entry entry;
  entry.row.kernel = task.name;
  entry.row.args = task.args;
  entry.row.target = task.target.name;
  entry.row.threads = pool.workers();
  entry.row.schedule = schedule.schedule;
  entry.kernel = compile_or_keep(task, schedule.trace, pool.workers());
  entry.arguments = entry.kernel.prepacked(with_own_outputs(entry.kernel, arguments));
  entry.kernel.run(entry.arguments, pool);
  const Comparison comparison = compare_arguments(task, expected, entry.arguments);
  entry.row.check = comparison.passed ? CheckResult::passed : CheckResult::failed;
  if (!comparison.passed) {
    const std::string file = keep_failure(task, schedule.trace, TrialStatus::wrong_answer,
                                          comparison.reason, kInputSeed, pool.workers());
    entry.row.reason = fmt::format("{} under {}: wrong answer: {}; tenon replay {} reproduces it",
                                   task.name, schedule.schedule, comparison.reason, file);
  }
  return entry;
}

void finish(Entry& entry, const Task& task, double peak_gflops) {
  entry.row.median_us = entry.samples.median();
  entry.row.mad_us = entry.samples.mad();
  if (task.flops > 0 && entry.row.median_us > 0) {
    entry.row.gflops = task.flops / entry.row.median_us * 1e-3;
    entry.row.peak_fraction = peak_gflops > 0 ? entry.row.gflops / peak_gflops : 0;
  }
}

}  // namespace

std::string BenchRow::to_json() const {
  nlohmann::ordered_json line = {{"kernel", kernel},
                                 {"args", nlohmann::ordered_json::parse(args)},
                                 {"target", target},
                                 {"threads", threads},
                                 {"schedule", schedule},
                                 {"median_us", median_us},
                                 {"mad_us", mad_us},
                                 {"gflops", gflops},
                                 {"peak_fraction", peak_fraction},
                                 {"check", name(check)}};
  return line.dump();
}

std::string bench_table(const std::vector<BenchRow>& rows) {
  size_t widest = 6, schedule = 8;
  for (const BenchRow& r : rows) {
    widest = std::max(widest, r.kernel.size());
    schedule = std::max(schedule, r.schedule.size());
  }
  std::string out =
      fmt::format("{:{}}  {:{}} {:>11} {:>9} {:>9} {:>6}  {}\n", "kernel", widest, "schedule",
                  schedule, "median us", "mad us", "GFLOP/s", "peak", "check");
  for (const BenchRow& r : rows) {
    const std::string rate = r.gflops > 0
                                 ? fmt::format("{:9.2f} {:5.1f}%", r.gflops, 100 * r.peak_fraction)
                                 : fmt::format("{:>9} {:>6}", "-", "-");
    out += fmt::format("{:{}}  {:{}} {:11.2f} {:9.2f} {}  {}\n", r.kernel, widest, r.schedule,
                       schedule, r.median_us, r.mad_us, rate, name(r.check));
  }
  return out;
}

std::vector<NamedTrace> default_and_best(const Task& task, const RecordStore& store, int threads) {
  std::vector<NamedTrace> out = {{"default", default_schedule(task).trace()}};
  const auto recorded = recorded_schedule(task, store, threads, check_adapted(threads));
  if (recorded) out.push_back(*recorded);
  return out;
}

std::vector<BenchRow> bench(const Task& task, const std::vector<NamedTrace>& schedules,
                            const BenchOptions& options) {
  require_device("bench", task);
  ThreadPool pool(options.threads);
  double peak = options.peak_gflops;
  if (peak == 0 && task.flops > 0 && !task.target.is_gpu())
    peak = measure_fma_gflops(task.target, options.threads, 0.5);

  const std::vector<Array> arguments = sample_arguments(task, kInputSeed);
  const Kernel plain = compile_or_keep(task, Trace{}, options.threads);
  const std::vector<Array> expected = with_own_outputs(plain, arguments);
  plain.run(expected, pool);

  std::vector<Entry> entries;
  for (const NamedTrace& schedule : schedules) {
    entries.push_back(make_entry(task, schedule, arguments, expected, pool));
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (Entry& entry : entries) take_round(entry, pool, options.floor_us);
  }
  if (options.unscheduled) {
    entries.insert(entries.begin(),
                   make_entry(task, {"unscheduled", {}}, arguments, expected, pool));
    take_round(entries.front(), pool, 0);
  }
  std::vector<BenchRow> rows;
  for (Entry& entry : entries) {
    finish(entry, task, peak);
    rows.push_back(entry.row);
  }
  return rows;
}

}  // namespace tenon
