#include "autotvm/measure/local_runner.h"

#include <algorithm>

#include "autotvm/measure/expected.h"
#include "autotvm/measure/long_step.h"
#include "autotvm/measure/race.h"

namespace tenon {
namespace {

constexpr double kStatementsPerS = 1e6;  // that the interpreter runs

class LocalRunner : public Runner {
 public:
  LocalRunner(const Task& task, const RunnerOptions& options, CompileFn compile)
      : task_(task),
        options_(completed(options)),
        compilers_(std::move(compile), build_options(task, options)),
        setup_(make_setup(task, options)),
        arguments_(argument_offsets(setup_.parameters).back()) {
    setup_.shared_fd = arguments_.fd();
    race_.emplace(options_, setup_, clock_);
  }

  std::vector<Measurement> measure(const std::vector<Candidate>& candidates) override {
    std::vector<Measurement> out;
    if (!make_ready()) return out;
    for (const Built& built : build(candidates)) {
      if (now_us() >= until_us_) break;
      Measurement m = race_->measure(built);
      if (stopped()) break;
      out.push_back(std::move(m));
    }
    return out;
  }

  std::vector<Measurement> compare(const std::vector<Candidate>& candidates,
                                   double seconds) override {
    if (!make_ready()) return {};
    const double until_us = std::exchange(until_us_, std::numeric_limits<double>::infinity());
    const std::vector<Built> all = build(candidates);
    until_us_ = until_us;
    if (all.size() < candidates.size()) return {};
    return clock_.run("compare", [&] { return race_->compare(all, seconds); });
  }

  RunnerNotes notes() const override {
    RunnerNotes out;
    out.stage_s = clock_.seconds();
    const CpuUse& cpu = race_->cpu();
    out.timed_s = cpu.wall_us * 1e-6;
    if (cpu.wall_us <= 0) return out;
    out.waited = cpu.waited_us / cpu.wall_us;
    out.others = std::max(0.0, cpu.others_us / cpu.wall_us);
    return out;
  }

 private:
  static RunnerOptions completed(RunnerOptions options) {
    if (options.program.empty()) options.program = find_runner_program();
    return options;
  }

  static BuildOptions build_options(const Task& task, const RunnerOptions& options) {
    BuildOptions out;
    out.workers = task.target.cores;
    out.timeout_s = options.compile_timeout_s;
    out.growth_bytes = options.growth_bytes;
    out.stop = options.stop;
    return out;
  }

  static RunnerSetup make_setup(const Task& task, const RunnerOptions& options) {
    RunnerSetup out;
    const Program sample = sample_program(task);
    out.parameters = constant_parameters(sample);
    for (const Var& v : task.program.symbols) out.dims.push_back(task.sample_sizes.at(v.name()));
    out.threads = options.threads;
    out.tolerance = tolerance_factor(sample);
    out.memory_bytes = options.memory_bytes;
    out.cold = options.cold;
    return out;
  }

  bool stopped() const { return options_.stop && options_.stop->load(); }

  /// Inputs and expected outputs; false when stopped.
  bool make_ready() {
    if (ready_) return true;
    ExpectedOptions expected;
    expected.runner_program = options_.program;
    expected.timeout_s = options_.expected_timeout_s;
    expected.oracle_limit = static_cast<double>(options_.oracle_limit);
    expected.seed = options_.seed;
    expected.stop = options_.stop;
    expected.whole_limit = options_.interpreter_s * kStatementsPerS;
    const LongStep said(options_.on_long_step,
                        fmt::format("{}: computing once what is right, {:.3g} statements",
                                    task_.name, points_of(sample_program(task_))));
    clock_.run("inputs", [&] { write_inputs(task_, setup_, options_.seed, arguments_); });
    ready_ = clock_.run("expected", [&] {
      return compute_expected(task_, setup_, arguments_, compilers_, expected);
    });
    return ready_;
  }

  std::vector<Built> build(const std::vector<Candidate>& candidates) {
    std::vector<const Program*> programs;
    for (const Candidate& c : candidates) programs.push_back(&c.program);
    return clock_.run("compile", [&] { return compilers_.build(programs, until_us_); });
  }

  Task task_;
  RunnerOptions options_;
  CompilerPool compilers_;  // first: forked before there is much memory
  RunnerSetup setup_;
  SharedMemory arguments_;
  StageClock clock_;
  std::optional<Race> race_;
  bool ready_ = false;
};

}  // namespace

std::unique_ptr<Runner> local_runner_with(const Task& task, const RunnerOptions& options,
                                          CompileFn compile) {
  return std::make_unique<LocalRunner>(task, options, std::move(compile));
}

std::unique_ptr<Runner> local_runner(const Task& task, const RunnerOptions& options) {
  const Target target = task.target;
  return local_runner_with(
      task, options, [target](const Program& program) { return compile_object(program, target); });
}

}  // namespace tenon
