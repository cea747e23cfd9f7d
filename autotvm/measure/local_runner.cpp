#include "autotvm/measure/local_runner.h"

#include <tenon/support/stats.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "autotvm/measure/expected.h"
#include "autotvm/measure/runner_process.h"

namespace tenon {
namespace {

constexpr int64_t kGrowthBytes = 512 << 20;  // a runner that has grown so much is replaced
constexpr double kFarBehind = 30;  // one call may take so many times the best before it is ended
constexpr double kLeastTimeoutS = 1;
constexpr int kCompareSamples = 15;
constexpr double kHopeless = 10;     // so many times the limit of outpaced: no second look;
constexpr double kLongCallUs = 2e4;  // for calls so long, that mean more and cost more,
constexpr double kHopelessLong = 2;  // so many times
constexpr double kRecheckUs = 300;   // a sample of the second look

class LocalRunner : public Runner {
 public:
  LocalRunner(const Task& task, const RunnerOptions& options, CompileFn compile)
      : task_(task),
        options_(options),
        compile_(std::move(compile)),
        parameters_(constant_parameters(sample_program(task))),
        expected_(expected_offsets(parameters_).back()) {
    if (options_.program.empty()) options_.program = find_runner_program();
    setup_.parameters = parameters_;
    for (const Var& v : task_.program.symbols)
      setup_.dims.push_back(task_.sample_sizes.at(v.name()));
    setup_.input_ranges = task_.input_ranges;
    setup_.seed = options_.seed;
    setup_.threads = options_.threads;
    setup_.tolerance = tolerance_factor(sample_program(task_));
    setup_.memory_bytes = options_.memory_bytes;
    setup_.expected_fd = expected_.fd();
  }

  std::vector<Measurement> measure(const std::vector<Candidate>& candidates) override {
    std::vector<Measurement> out;
    if (!make_ready()) return out;
    for (Built& built : build(candidates)) {
      Measurement m = measure_built(built);
      if (stopped()) break;
      out.push_back(std::move(m));
    }
    return out;
  }

  std::pair<Measurement, Measurement> compare(const Candidate& a, const Candidate& b) override {
    std::pair<Measurement, Measurement> out;
    if (!make_ready()) return out;
    const std::vector<Built> both = build({a, b});
    if (both.size() < 2) return out;
    Measurement* results[] = {&out.first, &out.second};
    std::vector<int> passed;
    for (int slot = 0; slot < 2; ++slot) {
      const Built& built = both[static_cast<size_t>(slot)];
      if (check_built(slot, built, *results[slot])) passed.push_back(slot);
    }
    forget_process();  // timed in a fresh one, as a program that uses the kernel would be
    for (int slot : passed) {
      if (!load(slot, both[static_cast<size_t>(slot)].object, *results[slot])) return out;
    }
    if (passed.empty()) return out;
    const RunnerReply reply =
        process().time(passed, options_.sample_us, kCompareSamples, options_.timeout_s * 10);
    for (size_t k = 0; k < passed.size(); ++k) take_samples(reply, k, *results[passed[k]]);
    forget_process();
    return out;
  }

 private:
  struct Incumbent {
    KernelObject object;
    double us = 0;  // a call, as measured last
  };

  bool stopped() const { return options_.stop && options_.stop->load(); }

  /// The expected outputs; false when stopped.
  bool make_ready() {
    if (ready_) return true;
    ExpectedOptions expected;
    expected.runner_program = options_.program;
    expected.compile_timeout_s = std::max(60.0, options_.compile_timeout_s);
    expected.timeout_s = options_.expected_timeout_s;
    expected.oracle_limit = static_cast<double>(options_.oracle_limit);
    expected.stop = options_.stop;
    ready_ = compute_expected(task_, setup_, expected_, compile_, expected);
    return ready_;
  }

  std::vector<Built> build(const std::vector<Candidate>& candidates) {
    std::vector<const Program*> programs;
    for (const Candidate& c : candidates) programs.push_back(&c.program);
    BuildOptions build;
    build.workers = task_.target.cores;
    build.timeout_s = options_.compile_timeout_s;
    build.stop = options_.stop;
    return build_all(programs, compile_, build);
  }

  RunnerProcess& process() {
    if (!process_) {
      process_.emplace(options_.program, setup_, options_.stop);
      first_rss_bytes_ = 0;
      incumbent_slot_ = -1;
    }
    return *process_;
  }
  void forget_process() { process_.reset(); }

  /// Notes the reply in `m`; true when all is well. A process that has ended is replaced later.
  bool good(const RunnerReply& reply, Measurement& m) {
    if (!reply.alive) forget_process();
    if (reply.status == TrialStatus::ok) return !reply.stopped;
    m.status = reply.status;
    m.reason = reply.reason;
    return false;
  }

  bool load(int slot, const KernelObject& object, Measurement& m) {
    return good(process().load(slot, object), m);
  }

  bool verify(int slot, double timeout_s, Measurement& m) {
    const RunnerReply reply = process().verify(slot, timeout_s);
    const bool compared = reply.alive && (reply.status == TrialStatus::ok ||
                                          reply.status == TrialStatus::wrong_answer);
    if (compared) {
      m.check = reply.status == TrialStatus::ok ? CheckResult::passed : CheckResult::failed;
      m.check_error = reply.check_error;
    }
    if (good(reply, m)) return true;
    forget_process();  // who writes where it should not may have spoiled more
    return false;
  }

  bool take_samples(const RunnerReply& reply, size_t slot, Measurement& m) {
    if (!good(reply, m)) {
      m.check = CheckResult::not_run;
      return false;
    }
    m.samples_us = reply.samples_us.at(slot);
    m.status = TrialStatus::ok;
    m.reason.clear();
    return true;
  }

  /// Seconds that one call may take.
  double call_timeout_s() const {
    if (!incumbent_) return options_.timeout_s;
    return std::min(options_.timeout_s,
                    std::max(kLeastTimeoutS, kFarBehind * incumbent_->us * 1e-6));
  }

  /// Puts the incumbent into the process; true when it is there.
  bool load_incumbent() {
    if (!incumbent_) return false;
    process();
    if (incumbent_slot_ >= 0) return true;
    Measurement ignored;  // it was loaded before; without it there is just no alternation
    const int slot = next_slot_++;
    if (load(slot, incumbent_->object, ignored)) incumbent_slot_ = slot;
    return incumbent_slot_ >= 0;
  }

  bool check_built(int slot, const Built& built, Measurement& m) {
    m.compile_us = built.object.compile_us;
    if (built.status == TrialStatus::ok)
      return load(slot, built.object, m) && verify(slot, options_.timeout_s, m);
    m.status = built.status;
    m.reason = built.reason;
    return false;
  }

  Measurement measure_built(const Built& built) {
    Measurement m;
    m.compile_us = built.object.compile_us;
    if (built.status != TrialStatus::ok) {
      m.status = built.status;
      m.reason = built.reason;
      return m;
    }
    const bool with_incumbent = load_incumbent();
    const int slot = next_slot_++;
    if (!load(slot, built.object, m) || !keeps_pace(slot, m) ||
        !verify(slot, 4 * call_timeout_s() + 1, m) || !time(slot, with_incumbent, m)) {
      if (process_) process_->unload(slot);
      return m;
    }
    settle(slot, built.object, m);
    return m;
  }

  /// A first look: false for a candidate that is far behind the incumbent, or fails.
  bool keeps_pace(int slot, Measurement& m) {
    const double limit_us = incumbent_ ? options_.outpaced * incumbent_->us : 0;
    RunnerReply reply = process().first(slot, limit_us, 2 * call_timeout_s());
    if (!good(reply, m)) return false;
    first_us_ = least(reply.samples_us.at(0));
    if (limit_us <= 0 || first_us_ <= limit_us) return true;
    double best_us = incumbent_->us;
    const double hopeless = first_us_ < kLongCallUs ? kHopeless : kHopelessLong;
    if (incumbent_slot_ >= 0 && first_us_ < hopeless * limit_us) {
      // The machine may have been busy just then: again, with the incumbent beside it.
      reply = process().time({slot, incumbent_slot_}, kRecheckUs, 2, 4 * call_timeout_s());
      if (!good(reply, m)) return false;
      first_us_ = least(reply.samples_us.at(0));
      best_us = least(reply.samples_us.at(1));
      if (first_us_ <= options_.outpaced * best_us) return true;
    }
    m.status = TrialStatus::outpaced;
    m.reason =
        fmt::format("{:.4g} us in its first calls, the best takes {:.4g}", first_us_, best_us);
    return false;
  }

  static double least(const std::vector<double>& samples) {
    return *std::min_element(samples.begin(), samples.end());
  }

  bool time(int slot, bool with_incumbent, Measurement& m) {
    std::vector<int> slots = {slot};
    if (with_incumbent && incumbent_slot_ >= 0) slots.push_back(incumbent_slot_);
    const double sample_s = std::max(options_.sample_us, first_us_) * 1e-6;
    const double timeout_s =
        2 * call_timeout_s() + 10 * sample_s * options_.samples * static_cast<double>(slots.size());
    const RunnerReply reply =
        process().time(slots, options_.sample_us, options_.samples, timeout_s);
    if (!take_samples(reply, 0, m)) return false;
    if (slots.size() == 2) incumbent_->us = median(reply.samples_us.at(1));
    rss_bytes_ = reply.rss_bytes;
    if (first_rss_bytes_ == 0) first_rss_bytes_ = rss_bytes_;
    return true;
  }

  /// The faster of the two stays loaded; a process that has grown is replaced.
  void settle(int slot, const KernelObject& object, const Measurement& m) {
    const double us = median(m.samples_us);
    if (!incumbent_ || us < incumbent_->us) {
      if (incumbent_slot_ >= 0) process().unload(incumbent_slot_);
      incumbent_ = Incumbent{object, us};
      incumbent_slot_ = slot;
    } else {
      process().unload(slot);
    }
    if (rss_bytes_ > first_rss_bytes_ + kGrowthBytes) forget_process();
  }

  Task task_;
  RunnerOptions options_;
  CompileFn compile_;
  std::vector<Parameter> parameters_;
  SharedMemory expected_;
  RunnerSetup setup_;
  bool ready_ = false;
  std::optional<RunnerProcess> process_;
  int64_t rss_bytes_ = 0, first_rss_bytes_ = 0;
  int next_slot_ = 0;
  std::optional<Incumbent> incumbent_;
  int incumbent_slot_ = -1;  // in the process; -1: not loaded
  double first_us_ = 0;      // of the candidate at hand
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
