#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/runtime/timer.h>

#include "arith/layout.h"
#include "codegen/llvm/codegen.h"
#include "codegen/opencl/opencl.h"
#include "compile/in_place.h"
#include "compile/packers.h"
#include "lower/lower.h"
#include "runtime/opencl/opencl.h"

namespace tenon {
namespace {

/// A number, or c + k * one of the program's symbols.
Extent extent_of(const Expr& e, const Program& program) {
  const std::optional<SymbolTerm> term = symbol_term(e);
  TENON_CHECK(term, "the extent {} of a parameter is neither a number nor c + k * symbol",
              print(e));
  if (!term->symbol.defined()) return Extent(term->constant);
  for (size_t s = 0; s < program.symbols.size(); ++s) {
    if (program.symbols[s].same_as(term->symbol))
      return Extent::of_symbol(static_cast<int>(s), term->factor, term->constant);
  }
  throw InternalError(fmt::format("internal error: {} is no symbol of {}", print(e), program.name));
}

/// Parallel loops that a call starts, those inside a serial loop counted twice.
int parallel_loops(const Stmt& body) {
  int loops = 0;
  walk(
      body,
      [&](const Stmt& s) {
        const For* n = s.as<For>();
        if (n) loops += n->mark == LoopMark::parallel ? 1 : 2 * parallel_loops(n->body);
        return n == nullptr;
      },
      nullptr);
  return loops;
}

}  // namespace

KernelObject compile_object(const Program& loop_tree, const Target& target) {
  const double start = now_us();
  const std::vector<InPlacePair> pairs = in_place_pairs(loop_tree);
  const Program flat = lower(loop_tree, target);
  KernelObject out;
  out.module.name = loop_tree.name;
  if (target.is_gpu()) {
    out.bytes = generate_opencl(flat, target);
  } else {
    CodegenOptions options;
    for (const InPlacePair& p : pairs) options.in_place.push_back({p.input, p.output});
    const ObjectCode code = generate_object(flat, target, options);
    out.bytes = code.bytes;
    out.symbol = code.symbol;
    out.symbolic_workspace = code.workspace.symbolic;
    out.module.many_loops = parallel_loops(flat.body) > 1;
    out.module.workspace_bytes = code.workspace.shared;
    out.module.workspace_bytes_per_worker = code.workspace.per_worker;
  }
  for (const Var& v : loop_tree.symbols)
    out.module.symbols.push_back({v.name(), v.range()->low, v.range()->high});
  for (const Param& p : loop_tree.params) {
    Parameter parameter{p.buffer->name, p.buffer->dtype, {}, p.role == ParamRole::output};
    for (const Expr& extent : storage_shape(*p.buffer))
      parameter.shape.push_back(extent_of(extent, loop_tree));
    if (!p.buffer->layout.empty()) {
      parameter.layout = layout_text(p.buffer->layout);
      out.packers.push_back(compile_object(packing_program(p.buffer, target), target));
    }
    out.module.parameters.push_back(std::move(parameter));
  }
  for (const InPlacePair& p : pairs) out.module.parameters[p.output].in_place.push_back(p.input);
  out.compile_us = now_us() - start;
  return out;
}

Program flat_program(const Program& loop_tree, const Target& target) {
  return lower(loop_tree, target);
}

namespace {

void load_machine_code(const KernelObject& object, const Target& target, Module& module) {
  static const Target host = Target::host();
  if (!target.runs_on(host)) {
    throw DeviceError(fmt::format("{} is compiled for {}; this machine is {} and cannot run it",
                                  object.module.name, target.name, host.name));
  }
  LoadedCode code = load_object(object.bytes, object.symbol, object.symbolic_workspace);
  module.entry = reinterpret_cast<tenon_kernel>(code.entry);
  module.workspace_of = reinterpret_cast<tenon_workspace>(code.workspace);
  module.keep_alive = std::move(code.keep_alive);
}

}  // namespace

Module load_kernel(const KernelObject& object, const Target& target) {
  Module module = object.module;
  if (is_opencl_source(object.bytes))
    module.device = load_opencl(object.bytes);
  else
    load_machine_code(object, target, module);
  size_t next = 0;
  for (Parameter& p : module.parameters)
    if (!p.layout.empty())
      p.packer = std::make_shared<const Module>(load_kernel(object.packers.at(next++), target));
  return module;
}

std::string code_generator_version() { return llvm_version(); }

}  // namespace tenon
