#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>
#include <tenon/runtime/timer.h>

#include "codegen/llvm/codegen.h"
#include "lower/lower.h"

namespace tenon {
namespace {

/// A number, or the module's symbol of that name, which is added when it is new.
Extent extent_of(const Expr& e, Module& module) {
  if (const std::optional<int64_t> value = as_int(e)) return Extent(*value);
  const VarRef* var = e.as<VarRef>();
  TENON_CHECK(var != nullptr, "the extent {} of a parameter is neither a number nor a variable",
              print(e));
  for (size_t s = 0; s < module.symbols.size(); ++s) {
    if (module.symbols[s].name == var->var.name()) return Extent::of_symbol(static_cast<int>(s));
  }
  module.symbols.push_back({var->var.name(), 0, INT64_MAX});
  return Extent::of_symbol(static_cast<int>(module.symbols.size() - 1));
}

}  // namespace

KernelObject compile_object(const Program& loop_tree, const Target& target) {
  const double start = now_us();
  const ObjectCode code = generate_object(lower(loop_tree, target), target);
  KernelObject out;
  out.bytes = code.bytes;
  out.symbol = code.symbol;
  out.module.name = loop_tree.name;
  out.module.workspace_bytes = code.workspace.shared;
  out.module.workspace_bytes_per_worker = code.workspace.per_worker;
  for (const Param& p : loop_tree.params) {
    Parameter parameter{p.buffer->name, p.buffer->dtype, {}, p.role == ParamRole::output};
    for (const Expr& extent : p.buffer->shape)
      parameter.shape.push_back(extent_of(extent, out.module));
    out.module.parameters.push_back(std::move(parameter));
  }
  out.compile_us = now_us() - start;
  return out;
}

Module load_kernel(const KernelObject& object, const Target& target) {
  static const Target host = Target::host();
  if (!target.runs_on(host)) {
    throw DeviceError(fmt::format("{} is compiled for {}; this machine is {} and cannot run it",
                                  object.module.name, target.name, host.name));
  }
  LoadedCode code = load_object(object.bytes, object.symbol);
  Module module = object.module;
  module.entry = reinterpret_cast<tenon_kernel>(code.entry);
  module.keep_alive = std::move(code.keep_alive);
  return module;
}

std::string code_generator_version() { return llvm_version(); }

}  // namespace tenon
