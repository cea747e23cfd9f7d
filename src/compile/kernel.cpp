#include <tenon/compile/compile.h>

#include <tenon/ir/ops.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <atomic>
#include <mutex>

#include "codegen/llvm/codegen.h"
#include "codegen/opencl/opencl.h"
#include "compile/packers.h"
#include "lower/lower.h"

namespace tenon {
namespace {

/// Workspaces that calls take and give back, so that a kernel may run in several threads at once.
/// The last one given back waits in a place that needs no lock.
class Workspaces {
 public:
  ~Workspaces() { delete ready_.load(); }

  std::unique_ptr<Workspace> take() {
    if (Workspace* one = ready_.exchange(nullptr, std::memory_order_acquire))
      return std::unique_ptr<Workspace>(one);
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<Workspace>();
    std::unique_ptr<Workspace> one = std::move(free_.back());
    free_.pop_back();
    return one;
  }

  void give_back(std::unique_ptr<Workspace> one) {
    one.reset(ready_.exchange(one.release(), std::memory_order_acq_rel));
    if (!one) return;
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(one));
  }

 private:
  std::atomic<Workspace*> ready_ = nullptr;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

}  // namespace

struct Kernel::State {
  Program program;
  Target target;
  Module module;
  double compile_us = 0;
  mutable Workspaces workspaces = {};

  Program flat() const { return lower(program, target); }
};

template <class Args>
void Kernel::run_on(Args arguments, ThreadPool& pool) const {
  if (!defined())
    throw UserError("an empty Kernel is called\n  try: assign what compile() returns to it first");
  const Module& module = state_->module;
  if (!module.needs_workspace()) {
    Workspace none;
    return call(module, arguments, pool, none);
  }
  std::unique_ptr<Workspace> workspace = state_->workspaces.take();
  call(module, arguments, pool, *workspace);
  state_->workspaces.give_back(std::move(workspace));
}

void Kernel::run(std::span<const Array> arguments, ThreadPool& pool) const {
  run_on(arguments, pool);
}
void Kernel::run(Arguments arguments, ThreadPool& pool) const { run_on(arguments, pool); }

namespace {

/// The parameter of that name that is packed ahead.
size_t packed_parameter(const Module& module, std::string_view name) {
  std::vector<std::string> known;
  for (size_t k = 0; k < module.parameters.size(); ++k) {
    if (module.parameters[k].name == name && module.parameters[k].packer) return k;
    if (module.parameters[k].packer) known.push_back(module.parameters[k].name);
  }
  throw UserError(fmt::format("kernel {} packs no input \"{}\" ahead; {}", module.name, name,
                              known.empty() ? "none is" : "it packs " + join(known)));
}

}  // namespace

Array Kernel::prepack(std::string_view parameter, const Array& array) const {
  const size_t k = packed_parameter(state_->module, parameter);
  return tenon::prepack(state_->module, k, array, default_pool());
}

Array Kernel::unpack(std::string_view parameter, const Array& packed) const {
  const Param& p = state_->program.params[packed_parameter(state_->module, parameter)];
  const Kernel inverse = compile(unpacking_program(p.buffer, state_->target), state_->target);
  const Array plain = Array::empty(p.buffer->dtype, *const_shape(p.buffer->shape));
  inverse(packed, plain);
  return plain;
}

std::vector<Array> Kernel::prepacked(std::span<const Array> arguments) const {
  std::vector<Array> out(arguments.begin(), arguments.end());
  const std::vector<Parameter>& parameters = module().parameters;
  for (size_t k = 0; k < out.size() && k < parameters.size(); ++k)
    if (parameters[k].packer) out[k] = tenon::prepack(module(), k, out[k], default_pool());
  return out;
}

const Module& Kernel::module() const { return state_->module; }
const Program& Kernel::program() const { return state_->program; }
double Kernel::compile_us() const { return state_->compile_us; }

std::string Kernel::loops() const { return print(state_->program); }
std::string Kernel::ir() const { return print(state_->flat()); }
std::string Kernel::source() const {
  const Target& target = state_->target;
  return target.is_gpu() ? generate_opencl(state_->flat(), target)
                         : generate_llvm_ir(state_->flat(), target);
}
std::string Kernel::assembly() const {
  if (state_->target.is_gpu())
    return "The driver of " + state_->target.cpu +
           " makes the machine code and does not show it; source() has the OpenCL C.\n";
  return generate_assembly(state_->flat(), state_->target);
}

Kernel compile(const Program& loop_tree, const Target& target) {
  const KernelObject object = compile_object(loop_tree, target);
  auto state = std::make_shared<Kernel::State>();
  state->program = loop_tree;
  state->target = target;
  state->module = load_kernel(object, target);
  state->compile_us = object.compile_us;
  Kernel kernel;
  kernel.state_ = std::move(state);
  return kernel;
}

}  // namespace tenon
