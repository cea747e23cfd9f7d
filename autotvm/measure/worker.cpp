#include "autotvm/measure/worker.h"

#include <immintrin.h>
#include <sys/mman.h>
#include <tenon/runtime/timer.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autotvm/measure/cpu_use.h"
#include "autotvm/measure/crash_report.h"

namespace tenon {
namespace {

constexpr uint8_t kOtherPoison = 0x5a;  // an output that happens to be 0xff throughout is no pass
constexpr size_t kPage = 4096, kLargePage = size_t{2} << 20;
constexpr double kLongCallUs = 2000;     // is warm after one call, and far behind after one
constexpr double kVeryLongCallUs = 1e5;  // a first call says as much as another

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/// The arguments in the shared memory.
std::vector<Array> map_arguments(const RunnerSetup& setup) {
  const std::vector<int64_t> offsets = argument_offsets(setup.parameters);
  const auto bytes = static_cast<size_t>(std::max<int64_t>(offsets.back(), 1));
  const int access = setup.writes_expected ? PROT_READ | PROT_WRITE : PROT_READ;
  void* memory = ::mmap(nullptr, bytes, access, MAP_SHARED, setup.shared_fd, 0);
  if (memory == MAP_FAILED) throw UserError("no memory for the arguments");
  std::shared_ptr<void> mapping(memory, [bytes](void* p) { ::munmap(p, bytes); });
  std::vector<Array> out;
  for (const Parameter& p : setup.parameters) {
    char* data = static_cast<char*>(memory) + offsets[out.size()];
    out.push_back(Array::wrap(data, p.dtype, constant_shape(p), mapping));
  }
  return out;
}

}  // namespace

ReadOnlyArray::ReadOnlyArray(const Array& contents, GuardAt guard) {
  const auto bytes = static_cast<size_t>(contents.bytes());
  const size_t unit = bytes >= 2 * kLargePage ? kLargePage : kPage;  // as Array has it
  const size_t inner = std::max<size_t>(unit, rounded_up(bytes, unit)), total = inner + 2 * unit;
  void* map = ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw UserError(fmt::format("no memory for {} bytes of input", bytes));
  std::shared_ptr<void> memory(map, [total](void* p) { ::munmap(p, total); });
  const size_t start = rounded_up(reinterpret_cast<size_t>(map) + 1, unit);
  char* first = static_cast<char*>(map) + (start - reinterpret_cast<size_t>(map));
  if (::mprotect(first, inner, PROT_READ | PROT_WRITE) != 0)
    throw UserError(fmt::format("no memory for {} bytes of input", bytes));
  if (unit == kLargePage) ::madvise(first, inner, MADV_HUGEPAGE);
  char* data = guard == GuardAt::start ? first : first + inner - bytes;
  if (bytes > 0) std::memcpy(data, contents.raw(), bytes);
  ::mprotect(first, inner, PROT_READ);
  array_ = Array::wrap(data, contents.dtype(), contents.shape(), memory);
}

TaskArrays::TaskArrays(const RunnerSetup& setup) {
  const std::vector<Array> arguments = map_arguments(setup);
  for (size_t k = 0; k < arguments.size(); ++k) {
    if (setup.parameters[k].is_output) {
      expected.push_back(arguments[k]);
      scales.push_back(output_rms(arguments[k]));
      continue;
    }
    inputs.emplace_back(arguments[k]);
    const auto bytes = static_cast<size_t>(arguments[k].bytes());
    if (bytes >= 2 * kLargePage && bytes % kLargePage == 0) {
      end_inputs.push_back(inputs.back());  // it starts and ends at pages
    } else {
      end_inputs.emplace_back(arguments[k], GuardAt::end);
    }
  }
}

Worker::Worker(const RunnerSetup& setup, const TaskArrays& arrays)
    : setup_(setup), arrays_(arrays), pool_(setup.threads) {
  for (const ReadOnlyArray& input : arrays_.inputs) arguments_.push_back(input.array().raw());
  for (const Parameter& p : setup_.parameters) {
    if (!p.is_output) continue;
    output_parameters_.push_back(p);
    outputs_.push_back(Array::empty(p.dtype, constant_shape(p)));
    arguments_.push_back(outputs_.back().raw());
  }
  watch_inputs();
}

void Worker::watch_inputs() const {
  forget_arrays();
  for (size_t k = 0; k < arrays_.inputs.size(); ++k)
    watch_array(setup_.parameters[k].name.c_str(), arguments_[k],
                static_cast<size_t>(arrays_.inputs[k].array().bytes()));
}

int64_t Worker::memory_limit_bytes() const {
  int64_t arguments = 0;
  for (const ReadOnlyArray& input : arrays_.inputs) arguments += input.array().bytes();
  for (const Array& output : outputs_) arguments += output.bytes();
  return setup_.memory_bytes + 2 * arguments;
}

Worker::Loaded& Worker::at(int slot) {
  auto found = kernels_.find(slot);
  TENON_CHECK(found != kernels_.end(), "no kernel in slot {}", slot);
  return found->second;
}

void Worker::load(int slot, const KernelObject& object) {
  const Module module = load_kernel(object, Target::host());
  const int64_t workspace = module.workspace_total(pool_.workers(), setup_.dims.data());
  if (workspace > setup_.memory_bytes) {
    throw UserError(fmt::format("its workspace is {} MiB, {} are allowed", workspace >> 20,
                                setup_.memory_bytes >> 20));
  }
  Loaded kernel{module, 0, {}, arguments_};
  for (size_t k = 0; k < arrays_.inputs.size(); ++k) {
    if (!kernel.module.parameters[k].packer) continue;
    const Array packed = prepack(kernel.module, k, arrays_.inputs[k].array(), pool_);
    kernel.arguments[k] = kernel.packed.emplace(k, packed).first->second.array().raw();
  }
  kernels_[slot] = std::move(kernel);
}

void Worker::run(const Module& module, const std::vector<void*>& arguments) {
  call_unchecked(module, arguments.data(), setup_.dims.data(), pool_, workspace_);
}

void Worker::make_expected(int slot) {
  std::vector<void*> arguments = arguments_;
  for (size_t k = 0; k < arrays_.expected.size(); ++k)
    arguments[arrays_.inputs.size() + k] = arrays_.expected[k].raw();
  run(at(slot).module, arguments);
}

/// Puts the kernel's arguments out of every cache.
void Worker::empty_caches(const Loaded& kernel) const {
  constexpr size_t kLine = 64;
  auto flush = [](const Array& a) {
    const char* data = static_cast<const char*>(a.raw());
    for (size_t at = 0; at < static_cast<size_t>(a.bytes()); at += kLine) _mm_clflush(data + at);
  };
  for (const ReadOnlyArray& input : arrays_.inputs) flush(input.array());
  for (const auto& [k, packed] : kernel.packed) flush(packed.array());
  for (const Array& output : outputs_) flush(output);
  _mm_mfence();
}

double Worker::sample(int slot, int64_t calls) {
  Loaded& kernel = at(slot);
  if (slot != written_by_) written_by_ = -1;
  double total = 0;
  const int64_t turns = setup_.cold ? calls : 1, each = setup_.cold ? 1 : calls;
  for (int64_t turn = 0; turn < turns; ++turn) {
    if (setup_.cold) empty_caches(kernel);
    const double start = now_us();
    for (int64_t k = 0; k < each; ++k) run(kernel.module, kernel.arguments);
    total += now_us() - start;
  }
  kernel.call_us = total / static_cast<double>(calls);
  return kernel.call_us;
}

void Worker::poison_outputs() {
  for (const Array& output : outputs_)
    std::memset(output.raw(), GuardedBuffer::kPoison, static_cast<size_t>(output.bytes()));
}

std::vector<double> Worker::first(int slot, double outpaced_us) {
  constexpr double kWarmUs = 200;
  const ThreadPool::Busy busy(pool_);
  poison_outputs();
  written_by_ = slot;
  std::vector<double> out = {sample(slot, 1)};
  // What a cold call costs more than a warm one is little where calls are long.
  const double hopeless = out.front() > kLongCallUs ? 2 : 4;
  if (outpaced_us > 0 && out.front() > hopeless * outpaced_us) return out;
  if (outpaced_us > 0 && out.front() > kLongCallUs && out.front() <= outpaced_us) return out;
  if (out.front() > kVeryLongCallUs) return out;
  for (double spent = 0; spent < kWarmUs; spent += out.back()) out.push_back(sample(slot, 1));
  return out;
}

std::vector<std::vector<double>> Worker::time(const std::vector<int>& slots, double sample_us,
                                              int samples, double behind, CpuUse& cpu) {
  const ThreadPool::Busy busy(pool_);
  const CpuWatch watch;
  std::vector<std::vector<double>> out(slots.size());
  std::vector<int64_t> calls;
  for (int slot : slots) {
    if (at(slot).call_us < kLongCallUs) sample(slot, 1);  // warm, and how long it takes now
    const double enough = std::ceil(sample_us / std::max(at(slot).call_us, 0.01));
    calls.push_back(setup_.cold ? 1 : static_cast<int64_t>(std::clamp(enough, 1.0, 1e6)));
  }
  auto least = [&](size_t k) { return *std::min_element(out[k].begin(), out[k].end()); };
  for (int s = 0; s < samples; ++s) {
    for (size_t k = 0; k < slots.size(); ++k) out[k].push_back(sample(slots[k], calls[k]));
    const double limit = 1 + (behind - 1) * 2 / (s + 1);
    if (s > 0 && behind > 0 && slots.size() == 2 && least(0) > limit * least(1)) break;
  }
  cpu = watch.stop();
  return out;
}

Worker::Verdict Worker::verify(int slot) {
  Verdict verdict;
  verify_timed(slot, verdict);
  if (verdict.status == TrialStatus::ok) verify_guarded(at(slot), verdict);
  return verdict;
}

void Worker::verify_timed(int slot, Verdict& verdict) {
  if (written_by_ != slot) {
    poison_outputs();
    run(at(slot).module, at(slot).arguments);
  }
  written_by_ = -1;
  for (size_t k = 0; k < outputs_.size(); ++k) judge(k, outputs_[k], verdict);
}

void Worker::make_end_outputs() {
  for (const Array& output : outputs_)
    end_outputs_.push_back(std::make_unique<GuardedBuffer>(
        static_cast<size_t>(output.bytes()), static_cast<size_t>(byte_size(output.dtype())),
        GuardAt::end));
}

void Worker::verify_guarded(const Loaded& kernel, Verdict& verdict) {
  if (end_outputs_.empty()) make_end_outputs();
  std::vector<ReadOnlyArray> packed;  // only for now
  std::vector<void*> arguments;
  forget_arrays();
  for (size_t k = 0; k < arrays_.inputs.size(); ++k) {
    const auto ahead = kernel.packed.find(k);
    if (ahead != kernel.packed.end()) packed.emplace_back(ahead->second.array(), GuardAt::end);
    const Array& input =
        ahead != kernel.packed.end() ? packed.back().array() : arrays_.end_inputs[k].array();
    arguments.push_back(input.raw());
    watch_array(setup_.parameters[k].name.c_str(), input.raw(), static_cast<size_t>(input.bytes()));
  }
  for (size_t k = 0; k < end_outputs_.size(); ++k) {
    const GuardedBuffer& buffer = *end_outputs_[k];
    std::memset(buffer.data(), kOtherPoison, buffer.bytes());
    arguments.push_back(buffer.data());
    watch_array(output_parameters_[k].name.c_str(), buffer.data(), buffer.bytes());
  }
  run(kernel.module, arguments);
  watch_inputs();
  for (size_t k = 0; k < end_outputs_.size(); ++k) {
    const Parameter& p = output_parameters_[k];
    if (!end_outputs_[k]->slack_intact()) {
      verdict = {TrialStatus::wrong_answer, "wrote just outside of " + p.name, std::nan("")};
      end_outputs_.clear();
      return;
    }
    judge(k, Array::wrap(end_outputs_[k]->data(), p.dtype, outputs_[k].shape(), nullptr), verdict);
  }
}

/// Compares an output with the expected one; the worst counts.
void Worker::judge(size_t output, const Array& actual, Verdict& verdict) const {
  if (verdict.status != TrialStatus::ok) return;
  const Comparison c = compare_output(output_parameters_[output].name, arrays_.expected[output],
                                      actual, setup_.tolerance, arrays_.scales[output]);
  if (!c.passed) verdict = {TrialStatus::wrong_answer, c.reason, c.error};
  if (c.passed) verdict.error = std::max(verdict.error, c.error);
}

}  // namespace tenon
