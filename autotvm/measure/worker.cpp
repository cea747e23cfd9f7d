#include "autotvm/measure/worker.h"

#include <sys/mman.h>
#include <tenon/runtime/timer.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autotvm/measure/crash_report.h"

namespace tenon {
namespace {

constexpr uint8_t kOtherPoison = 0x5a;  // an output that happens to be 0xff throughout is no pass
constexpr double kSlowUs = 50000;       // verified once instead of at both ends

/// The arrays of the expected outputs in the shared memory.
std::vector<Array> map_expected(const RunnerSetup& setup) {
  const std::vector<int64_t> offsets = expected_offsets(setup.parameters);
  const auto bytes = static_cast<size_t>(std::max<int64_t>(offsets.back(), 1));
  const int access = setup.writes_expected ? PROT_READ | PROT_WRITE : PROT_READ;
  void* memory = ::mmap(nullptr, bytes, access, MAP_SHARED, setup.expected_fd, 0);
  if (memory == MAP_FAILED) throw UserError("no memory for the expected outputs");
  std::shared_ptr<void> mapping(memory, [bytes](void* p) { ::munmap(p, bytes); });
  std::vector<Array> out;
  for (const Parameter& p : setup.parameters) {
    if (!p.is_output) continue;
    char* data = static_cast<char*>(memory) + offsets[out.size()];
    out.push_back(Array::wrap(data, p.dtype, constant_shape(p), mapping));
  }
  return out;
}

}  // namespace

ReadOnlyArray::ReadOnlyArray(const Array& contents) {
  constexpr size_t kPage = 4096;
  const auto bytes = static_cast<size_t>(contents.bytes());
  const size_t inner = std::max<size_t>(1, (bytes + kPage - 1) / kPage) * kPage;
  const size_t total = inner + 2 * kPage;
  void* map = ::mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw UserError(fmt::format("no memory for {} bytes of input", bytes));
  std::shared_ptr<void> memory(map, [total](void* p) { ::munmap(p, total); });
  char* data = static_cast<char*>(map) + kPage;
  if (::mprotect(data, inner, PROT_READ | PROT_WRITE) != 0)
    throw UserError(fmt::format("no memory for {} bytes of input", bytes));
  if (bytes > 0) std::memcpy(data, contents.raw(), bytes);
  ::mprotect(data, inner, PROT_READ);
  array_ = Array::wrap(data, contents.dtype(), contents.shape(), memory);
}

Worker::Worker(const RunnerSetup& setup) : setup_(setup), pool_(setup.threads) {
  for (const Parameter& p : setup_.parameters) {
    if (p.is_output) continue;
    // Positions count parameters, inputs first, as in sample_arguments().
    inputs_.emplace_back(task_input(p, inputs_.size(), setup_.seed, setup_.input_ranges));
    arguments_.push_back(inputs_.back().array().raw());
    watch_array(p.name.c_str(), arguments_.back(),
                static_cast<size_t>(inputs_.back().array().bytes()));
  }
  expected_ = map_expected(setup_);
  for (const Parameter& p : setup_.parameters) {
    if (!p.is_output) continue;
    outputs_.push_back(Array::empty(p.dtype, constant_shape(p)));
    std::memset(outputs_.back().raw(), GuardedBuffer::kPoison,
                static_cast<size_t>(outputs_.back().bytes()));
    arguments_.push_back(outputs_.back().raw());
  }
}

int64_t Worker::memory_limit_bytes() const {
  int64_t arguments = 0;
  for (const ReadOnlyArray& input : inputs_) arguments += input.array().bytes();
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
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (!kernel.module.parameters[k].packer) continue;
    const Array packed = prepack(kernel.module, k, inputs_[k].array(), pool_);
    kernel.arguments[k] = kernel.packed.emplace(k, packed).first->second.array().raw();
  }
  kernels_[slot] = std::move(kernel);
}

const Array& Worker::input_of(const Loaded& kernel, size_t parameter) const {
  const auto packed = kernel.packed.find(parameter);
  return packed == kernel.packed.end() ? inputs_[parameter].array() : packed->second.array();
}

void Worker::run(const Module& module, const std::vector<void*>& arguments) {
  call_unchecked(module, arguments.data(), setup_.dims.data(), pool_, workspace_);
}

void Worker::make_expected(int slot) {
  std::vector<void*> arguments;
  for (const ReadOnlyArray& input : inputs_) arguments.push_back(input.array().raw());
  for (const Array& output : expected_) arguments.push_back(output.raw());
  run(at(slot).module, arguments);
}

double Worker::sample(Loaded& kernel, int64_t calls) {
  const double start = now_us();
  for (int64_t k = 0; k < calls; ++k) run(kernel.module, kernel.arguments);
  kernel.call_us = (now_us() - start) / static_cast<double>(calls);
  return kernel.call_us;
}

std::vector<double> Worker::first(int slot, double outpaced_us) {
  constexpr double kWarmUs = 200;
  const ThreadPool::Busy busy(pool_);
  Loaded& kernel = at(slot);
  std::vector<double> out = {sample(kernel, 1)};
  if (outpaced_us > 0 && out.front() > 4 * outpaced_us) return out;
  for (double spent = 0; spent < kWarmUs; spent += out.back()) out.push_back(sample(kernel, 1));
  return out;
}

std::vector<std::vector<double>> Worker::time(const std::vector<int>& slots, double sample_us,
                                              int samples) {
  const ThreadPool::Busy busy(pool_);
  std::vector<std::vector<double>> out(slots.size());
  std::vector<int64_t> calls;
  for (int slot : slots) {
    Loaded& kernel = at(slot);
    sample(kernel, 1);  // warm, and how long it takes now
    const double enough = std::ceil(sample_us / std::max(kernel.call_us, 0.01));
    calls.push_back(static_cast<int64_t>(std::clamp(enough, 1.0, 1e6)));
  }
  for (int s = 0; s < samples; ++s) {
    for (size_t k = 0; k < slots.size(); ++k) out[k].push_back(sample(at(slots[k]), calls[k]));
  }
  return out;
}

Worker::Verdict Worker::verify(int slot) {
  const Loaded& kernel = at(slot);
  Verdict verdict = verify_at(kernel, GuardAt::end, GuardedBuffer::kPoison);
  if (verdict.status != TrialStatus::ok || kernel.call_us > kSlowUs) return verdict;
  Verdict other = verify_at(kernel, GuardAt::start, kOtherPoison);
  return other.status != TrialStatus::ok || other.error > verdict.error ? other : verdict;
}

Worker::Verdict Worker::verify_at(const Loaded& kernel, GuardAt guard, uint8_t poison) {
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<void*> arguments;
  for (size_t k = 0; k < setup_.parameters.size(); ++k) {
    const Parameter& p = setup_.parameters[k];
    const bool is_input = k < inputs_.size();
    const Array& like = is_input ? input_of(kernel, k) : outputs_[k - inputs_.size()];
    const auto bytes = static_cast<size_t>(like.bytes());
    buffers.push_back(
        std::make_unique<GuardedBuffer>(bytes, static_cast<size_t>(byte_size(p.dtype)), guard));
    if (is_input && bytes > 0) {
      std::memcpy(buffers.back()->data(), like.raw(), bytes);
    } else if (bytes > 0) {
      std::memset(buffers.back()->data(), poison, bytes);
    }
    arguments.push_back(buffers.back()->data());
  }
  forget_arrays();
  for (size_t k = 0; k < buffers.size(); ++k)
    watch_array(setup_.parameters[k].name.c_str(), arguments[k], buffers[k]->bytes());
  run(kernel.module, arguments);
  forget_arrays();
  for (size_t k = 0; k < inputs_.size(); ++k) {
    watch_array(setup_.parameters[k].name.c_str(), inputs_[k].array().raw(),
                static_cast<size_t>(inputs_[k].array().bytes()));
  }
  return judge(kernel, buffers);
}

Worker::Verdict Worker::judge(const Loaded& kernel,
                              const std::vector<std::unique_ptr<GuardedBuffer>>& buffers) {
  Verdict out;
  const double unknown = std::nan("");
  for (size_t k = 0; k < buffers.size(); ++k) {
    const Parameter& p = setup_.parameters[k];
    if (!buffers[k]->slack_intact())
      return {TrialStatus::wrong_answer, "wrote just outside of " + p.name, unknown};
    if (k < inputs_.size()) {
      const Array& original = input_of(kernel, k);
      const auto bytes = static_cast<size_t>(original.bytes());
      if (bytes > 0 && std::memcmp(buffers[k]->data(), original.raw(), bytes) != 0)
        return {TrialStatus::wrong_answer, "wrote to the input " + p.name, unknown};
      continue;
    }
    const Array& expected = expected_[k - inputs_.size()];
    const Array actual = Array::wrap(buffers[k]->data(), p.dtype, expected.shape(), nullptr);
    const Comparison c = compare_output(p.name, expected, actual, setup_.tolerance);
    if (!c.passed) return {TrialStatus::wrong_answer, c.reason, c.error};
    out.error = std::max(out.error, c.error);
  }
  return out;
}

}  // namespace tenon
