#include <tenon/autotvm/verify.h>
#include <tenon/driver/bench.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>
#include <tenon/support/log.h>

#include <memory>

namespace tenon {
namespace {

constexpr uint64_t kInputSeed = 22;
constexpr double kFloorUs = 500;
constexpr int kRounds = 5;
constexpr double kWorthIt = 0.97;  // within noise the default stays

// Both in turns; faster only if it is so in every round.
bool is_faster(const Kernel& kernel, const Kernel& standard, const std::vector<Array>& arguments,
               const std::vector<Array>& standard_arguments, ThreadPool& pool) {
  const ThreadPool::Busy busy(pool);
  for (int round = 0; round < kRounds; ++round) {
    const Samples own = time_repeatedly([&] { kernel.run(arguments, pool); }, kFloorUs, 1);
    const Samples other =
        time_repeatedly([&] { standard.run(standard_arguments, pool); }, kFloorUs, 1);
    if (own.median() >= kWorthIt * other.median()) return false;
  }
  return true;
}

bool is_good(const Task& task, const Trace& trace, ThreadPool& pool) {
  const Trace standard_trace = default_schedule(task).trace();
  if (trace == standard_trace) return false;
  const std::vector<Array> expected = sample_arguments(task, kInputSeed),
                           actual = sample_arguments(task, kInputSeed);
  const Kernel kernel = compile(task, trace);
  compile(task, Trace{}).run(expected, pool);
  const std::vector<Array> own = kernel.prepacked(actual);  // the outputs are those of `actual`
  kernel.run(own, pool);
  const Comparison comparison = compare_arguments(task, expected, actual);
  if (!comparison.passed) {
    log_line(1, "driver", fmt::format("{}: adapted schedule: {}", task.name, comparison.reason));
    return false;
  }
  const Kernel standard = compile(task, standard_trace);
  return is_faster(kernel, standard, own, standard.prepacked(actual), pool);
}

}  // namespace

TraceCheck check_adapted(int threads) {
  const auto pool = std::make_shared<ThreadPool>(threads);
  return [pool](const Task& task, const Trace& trace) {
    return task.target.runs_on(Target::host()) && is_good(task, trace, *pool);
  };
}

}  // namespace tenon
