#pragma once
#include <tenon/autotvm/runner.h>
#include <tenon/autotvm/tune.h>
#include <tenon/driver/bench.h>
#include <tenon/graph/network.h>

#include <filesystem>
#include <functional>

namespace tenon {

/// Imports a network: passes, groups and tasks, kernels on the best records found (else their
/// default schedule), compiled and ready to run. UserError as load_onnx and bind_shapes.
Network load(const std::filesystem::path& model, const NetworkOptions& options = {},
             const RecordPlaces& places = {},
             const std::function<void(size_t done, size_t all)>& progress = {});

/// Tunes the network's kernels, most important first, within one budget, then (unless stopped)
/// compiles the winners.
/// What stands in the log already counts: nothing is measured twice. An empty options.log is
/// tuning_logs/NAME.jsonl.
std::vector<TuneReport> tune(Network& network, const TuneOptions& options);

/// The task of an operator called by name: {"matmul", "m=1024", "n=1024"}. UserError with the
/// nearest names.
Task operator_task(const std::vector<std::string>& words, const Target& target);

/// The network's kernels under default and selected schedules, then the whole network under both,
/// interleaved.
struct NetworkBench {
  std::vector<BenchRow> rows;
  std::string network;
  double default_us = 0, median_us = 0;
  double unscheduled_us = 0;  ///< 0: not asked for

  std::string to_json() const;  ///< the last row: {"network","default_us","median_us"}
};
NetworkBench bench(const std::filesystem::path& model, const NetworkOptions& options,
                   const RecordStore& store, const BenchOptions& bench_options);

/// The task that a record was measured on: what a failed trial's file holds, an operator by its
/// name and arguments, or the kernel of `model` (empty: none) whose program is the record's.
/// UserError when there is no such task or its formula is not the one that was measured.
Task task_of_record(const Record& record, const std::filesystem::path& model,
                    const NetworkOptions& options);

/// The record's schedule as a candidate of the task. ScheduleError where a step is not legal: also
/// for a record whose template was refused.
Candidate candidate_of(const Task& task, const Record& record);

/// Measures the record's schedule again, as the tuner did: in a process of its own, on the inputs
/// of the record's seed, with the record's threads where options.threads is 0. A wrong answer or
/// a crash is in the result.
Measurement remeasure(const Task& task, const Record& record, RunnerOptions options);

}  // namespace tenon
