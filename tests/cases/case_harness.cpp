#include "case_harness.h"

#include <tenon/autotvm/tune.h>
#include <tenon/compile/compile.h>
#include <tenon/ir/visit.h>
#include <tenon/runtime/guard.h>
#include <tenon/support/error.h>
#include <tenon/support/hash.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "kernels/templates.h"
#include "lower/lower.h"
#include "schedule/tree.h"
#include "tests/fuzz/random_step.h"

namespace tenon::cases {
namespace {

constexpr int64_t kCanaryBytes = 64;
constexpr uint8_t kCanary = 0xa5;
constexpr int kRandomSchedules = 4;

/// Where the arguments of a call lie.
enum class Place { canary, page_after, page_before };

/// An array with canary bytes before and behind it, one element beyond a multiple of 64 bytes.
class CanaryArray {
 public:
  CanaryArray(DType dtype, const Shape& shape) {
    const int64_t bytes = element_count(shape) * byte_size(dtype);
    memory_ = Array::empty(u8, {bytes + 2 * kCanaryBytes + byte_size(dtype)});
    std::memset(memory_.raw(), kCanary, memory_.bytes());
    void* data = memory_.data<uint8_t>() + kCanaryBytes + byte_size(dtype);
    array = Array::wrap(data, dtype, shape, std::make_shared<Array>(memory_));
  }
  bool intact() const {
    const uint8_t* first = static_cast<const uint8_t*>(array.raw());
    for (const uint8_t* p = memory_.data<uint8_t>(); p < memory_.data<uint8_t>() + memory_.bytes();
         ++p)
      if ((p < first || p >= first + array.bytes()) && *p != kCanary) return false;
    return true;
  }
  Array array;

 private:
  Array memory_;
};

/// The arguments of one call: copies of the inputs, poisoned outputs.
class GuardedArguments {
 public:
  GuardedArguments(const Work& work, const Program& program, Place place) : work_(work) {
    for (const Param& p : program.params) {
      const bool output = p.role == ParamRole::output;
      if (!output && !work.inputs.count(p.buffer->name))
        throw std::logic_error("the case gives no input " + p.buffer->name);
      const Array& like = output ? work.want.at(outputs_.size()) : work.inputs.at(p.buffer->name);
      Array a;
      if (place == Place::canary) {
        canaries_.emplace_back(like.dtype(), like.shape());
        a = canaries_.back().array;
      } else {
        a = guarded_array(like.dtype(), like.shape(),
                          place == Place::page_after ? GuardAt::end : GuardAt::start);
      }
      if (!output && like.bytes()) std::memcpy(a.raw(), like.raw(), like.bytes());
      if (output && a.bytes()) std::memset(a.raw(), 0xff, a.bytes());
      (output ? outputs_ : inputs_).push_back(a);
      names_.push_back(p.buffer->name);
    }
  }

  std::vector<Array> all() const {
    std::vector<Array> out = inputs_;
    out.insert(out.end(), outputs_.begin(), outputs_.end());
    return out;
  }

  /// What is wrong after the call, in words; empty when nothing is.
  std::string fault() const;

 private:
  const Work& work_;
  std::vector<CanaryArray> canaries_;
  std::vector<Array> inputs_, outputs_;
  std::vector<std::string> names_;
};

std::string element_text(const Array& a, int64_t n) {
  return fmt::format("{:.9g}", a.view(n, {1}).to_doubles()[0]);
}

std::string place_text(const Shape& shape, int64_t n) {
  std::string out;
  for (size_t d = shape.size(); d-- > 0; n /= shape[d])
    out = fmt::format("{}{}{}", n % shape[d], out.empty() ? "" : ", ", out);
  return "[" + out + "]";
}

bool same_element(const Array& want, const Array& got, int64_t n, const Work& work) {
  const int64_t size = byte_size(want.dtype());
  if (std::memcmp(static_cast<char*>(want.raw()) + n * size,
                  static_cast<char*>(got.raw()) + n * size, size) == 0)
    return true;
  if (!is_float(want.dtype())) return false;
  const double w = want.view(n, {1}).to_doubles()[0], g = got.view(n, {1}).to_doubles()[0];
  if (std::isnan(w) || std::isnan(g)) return std::isnan(w) && std::isnan(g);
  if (work.zeros_equal && w == 0 && g == 0) return true;
  const double tolerance = work.tolerance;
  return tolerance > 0 && std::abs(g - w) <= tolerance * std::max(1.0, std::abs(w));
}

std::string difference(const Array& want, const Array& got, const Work& work) {
  for (int64_t n = 0; n < want.size(); ++n)
    if (!same_element(want, got, n, work))
      return fmt::format("{} is {}, not {}", place_text(want.shape(), n), element_text(got, n),
                         element_text(want, n));
  return {};
}

std::string GuardedArguments::fault() const {
  for (size_t k = 0; k < canaries_.size(); ++k)
    if (!canaries_[k].intact()) return "written outside " + names_[k];
  for (size_t k = 0; k < inputs_.size(); ++k)
    if (!difference(work_.inputs.at(names_[k]), inputs_[k], {}).empty())
      return "input " + names_[k] + " was changed";
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const std::string text = difference(work_.want[k], outputs_[k], work_);
    if (!text.empty()) return names_[inputs_.size() + k] + text;
  }
  return {};
}

/// Inputs come before outputs in a program; names_ relies on it.
Program program_of(const Work& work) { return make_program("case", work.outputs); }

/// Without the printed program, which has every name in it.
std::string header_of(const std::string& message) {
  return message.substr(0, message.find("\n  program "));
}

bool says_all(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (message.find(part) == std::string::npos) return false;
  return true;
}

void record_refusal(const std::string& target, const std::string& label, const std::string& message,
                    const CheckOptions& options) {
  if (options.may_refuse && says_all(header_of(message), options.says))
    record(Outcome::refused, target, label, message);
  else
    record(Outcome::refused_wrongly, target, label, message);
}

}  // namespace

void check_calls(const Backend& backend, const Run& run, const Work& work, const Schedule& s,
                 const std::string& label) {
  std::vector<Place> places = {Place::canary};
  if (backend.machine_code) places.insert(places.end(), {Place::page_after, Place::page_before});
  for (Place place : places) {
    const GuardedArguments arguments(work, s.program(), place);
    run(arguments.all(), work.dims);
    const std::string fault = arguments.fault();
    if (fault.empty()) continue;
    return record(Outcome::wrong, backend.name, label,
                  fmt::format("{}\n{}{}", fault, to_cpp(s.trace()), s.print()));
  }
  record(Outcome::passed, backend.name, label);
}

void check_on(const Backend& backend, const Work& work, const std::string& label,
              const Steps& steps, const CheckOptions& options) {
  starts(backend.name, label);
  Schedule s(program_of(work), backend.target);
  try {
    steps(s);
    verify(s.program(), Form::LoopTree);
    starts(backend.name, label, to_cpp(s.trace()));
    check_calls(backend, backend.prepare(s.program()), work, s, label);
  } catch (const UserError& e) {
    record_refusal(backend.name, label, e.what(), options);
  } catch (const InternalError& e) {
    record(Outcome::wrong, backend.name, label, fmt::format("{}\n{}", e.what(), to_cpp(s.trace())));
  }
}

namespace {

Task task_of(const Work& work, const Target& target) {
  const Program program = program_of(work);
  Task task("case", program, templates_for(program, target), target);
  task.input_ranges = work.input_ranges;
  return task;
}

void replay_on(Schedule& s, const Trace& trace) {
  for (const Primitive& step : trace) s.apply(step);
}

/// The best of the default and two more trials, by the product's tuner.
Trace tuned(const Work& work) {
  std::string name = (std::filesystem::temp_directory_path() / "tenon-cases-XXXXXX").string();
  const std::string folder = ::mkdtemp(name.data());
  TuneOptions options;
  options.space = SpaceKind::templates;
  options.trials = 2;
  options.threads = 1;
  options.quiet = true;
  options.log = folder + "/log.jsonl";
  options.seed = 5;
  const Record best = tune(task_of(work, host_target()), options);
  std::filesystem::remove_all(folder);
  return trace_from_json(best.trace);
}

void check_tuned(const Work& work, const std::string& label) {
  starts("tuner", label);
  Trace trace;
  try {
    trace = tuned(work);
  } catch (const Error& e) {
    return record(Outcome::wrong, "tuner", label, e.what());
  }
  for (const Backend& b : backends())
    if (b.is_host) check_on(b, work, label, [&](Schedule& s) { replay_on(s, trace); }, {});
}

void random_steps(Schedule& s, uint64_t seed) {
  Rng rng(seed);
  const int64_t attempts = rng.between(4, 16);
  for (int64_t k = 0; k < attempts; ++k) s.try_apply(random_step(s, rng));
}

/// Each on the interpreter and one machine.
void check_random(const Work& work, const std::string& label) {
  const uint64_t seed = hash_text(label);
  for (int n = 0; n < kRandomSchedules; ++n) {
    for (size_t k = 0; k < backends().size(); ++k) {
      const Backend& b = backends()[k];
      if (b.machine_code && k % kRandomSchedules != static_cast<size_t>(n)) continue;
      check_on(b, work, fmt::format("{}, random {}", label, n),
               [&](Schedule& s) { random_steps(s, seed + n); }, {.may_refuse = true});
    }
  }
}

/// Loops of the stage from the outside in: spatial ones or all.
std::vector<std::string> loops_of(const Schedule& s, const std::string& stage, bool spatial) {
  std::vector<std::string> out;
  const StagePath path = find_stage(s.program(), stage);
  for (const For* l : path.loops)
    if (!spatial || !binds_reduce(*path.stage, l->var)) out.push_back(l->var.name());
  return out;
}

/// The default schedule for a GPU; in each case only the first few works, since drivers are slow.
void check_opencl(const Work& work, const std::string& label) {
  constexpr int kWorks = 6;
  static std::map<std::string, int> done;  // by case
  const Backend* device = work.dims.empty() ? opencl_backend() : nullptr;
  if (!device || ++done[Catch::getResultCapture().getCurrentTestName()] > kWorks) return;
  check_on(*device, work, label + ", default", [&](Schedule& s) {
    replay_on(s, default_schedule(task_of(work, device->target)).trace());
  });
}

}  // namespace

void check(const Work& work, const std::string& label, const Steps& steps,
           const CheckOptions& options) {
  for (const Backend& b : backends()) check_on(b, work, label, steps, options);
}

void check_gpu(const Work& work, const std::string& label, const Steps& steps,
               const CheckOptions& options) {
  for (const Backend& b : lockstep_backends()) check_on(b, work, label, steps, options);
  if (const Backend* device = opencl_backend()) check_on(*device, work, label, steps, options);
}

void check_default(const Work& work, const std::string& label) {
  check(work, label + ", unscheduled", [](Schedule&) {});
  for (const Backend& b : backends()) {
    check_on(b, work, label + ", default",
             [&](Schedule& s) { replay_on(s, default_schedule(task_of(work, b.target)).trace()); },
             {});
  }
}

void check_schedules(const Work& work, const std::string& label) {
  check_default(work, label);
  check(work, label + ", split and vectorize", split_and_vectorize);
  check(work, label + ", parallel", parallelize);
  check(work, label + ", unroll", unroll_inner);
  check_tuned(work, label + ", tuned");
  if (work.random_schedules) check_random(work, label);
  check_opencl(work, label);
}

void refused(const std::vector<Tensor>& outputs, const std::string& label, const Steps& steps,
             const std::vector<std::string>& says) {
  refused_call(
      "schedule", label,
      [&] {
        Schedule s(make_program("case", outputs), host_target());
        steps(s);
      },
      says);
}

void refused_call(const std::string& target, const std::string& label,
                  const std::function<void()>& call, const std::vector<std::string>& says) {
  starts(target, label);
  try {
    call();
  } catch (const UserError& e) {
    return record_refusal(target, label, e.what(), {.may_refuse = true, .says = says});
  } catch (const Error& e) {
    return record(Outcome::wrong, target, label, e.what());
  }
  record(Outcome::wrong, target, label, "was not refused");
}

void split_and_vectorize(Schedule& s) {
  for (const std::string& stage : s.stages()) {
    const std::vector<std::string> loops = loops_of(s, stage, true);
    if (loops.empty() || s.try_apply(Split{stage, loops.back(), 8})) continue;
    s.try_apply(Vectorize{stage, loops.back() + ".i", Tail::mask});
  }
}

void parallelize(Schedule& s) {
  for (const std::string& stage : s.stages())
    for (const std::string& loop : loops_of(s, stage, true))
      if (!s.try_apply(Parallel{stage, loop})) break;
}

void unroll_inner(Schedule& s) {
  for (const std::string& stage : s.stages()) {
    const std::vector<std::string> loops = loops_of(s, stage, false);
    if (loops.empty() || s.try_apply(Split{stage, loops.back(), 4})) continue;
    s.try_apply(Unroll{stage, loops.back() + ".i"});
  }
}

Array table_of(DType dtype, Shape shape, const std::function<double(int64_t)>& f) {
  std::vector<double> values(element_count(shape));
  for (size_t n = 0; n < values.size(); ++n) values[n] = f(static_cast<int64_t>(n));
  return from_doubles(dtype, std::move(shape), values);
}

Tensor map_of(const std::string& name, int64_t n, const std::function<Expr(Expr)>& f) {
  const Axis i("i", n);
  return compute(name, {i}, f(i));
}

Shape compacted_shape(const Program& scheduled, const std::string& buffer) {
  Shape shape;
  LowerOptions options;
  options.after_pass = [&](std::string_view pass, const Program& p) {
    if (pass != "compact_buffers") return;
    walk(
        p.body,
        [&](const Stmt& s) {
          const Allocate* a = s.as<Allocate>();
          if (a && a->buffer->name == buffer) shape = const_shape(a->buffer->shape).value();
          return true;
        },
        nullptr);
  };
  lower(scheduled, host_target(), options);
  return shape;
}

}  // namespace tenon::cases
