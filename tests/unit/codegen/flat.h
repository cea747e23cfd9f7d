#pragma once
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/runtime/guard.h>
#include <tenon/runtime/module.h>

#include "codegen/llvm/codegen.h"

// Short words to write flat programs by hand and run them.

namespace tenon::test {

inline Buffer flat_buffer(const std::string& name, DType t, int64_t elements,
                          Scope scope = Scope::global) {
  return Buffer(name, t, {Expr(elements)}, scope);
}

inline Stmt loop(const Var& v, Expr extent, Stmt body, LoopMark mark = LoopMark::serial) {
  For n;
  n.var = v;
  n.min = Expr(0);
  n.extent = std::move(extent);
  n.mark = mark;
  n.body = std::move(body);
  return make_stmt(std::move(n));
}

inline Stmt store(const Buffer& b, Expr index, Expr value, Expr mask = {}, bool atomic = false) {
  return make_stmt(Store{b, {std::move(index)}, std::move(value), std::move(mask), atomic});
}

inline Stmt allocate(const Buffer& b, Stmt body) { return make_stmt(Allocate{b, std::move(body)}); }

inline Program program(std::vector<Buffer> inputs, std::vector<Buffer> outputs, Stmt body) {
  Program p;
  p.name = "flat";
  for (Buffer& b : inputs) p.params.push_back({std::move(b), ParamRole::input});
  for (Buffer& b : outputs) p.params.push_back({std::move(b), ParamRole::output});
  p.body = std::move(body);
  return p;
}

/// Verifies, compiles for `target`, loads and calls `p`. Arrays as the parameters stand.
inline void run(const Program& p, const std::vector<Array>& arrays,
                const Target& target = Target::host(), ThreadPool& pool = serial_pool()) {
  verify(p, Form::Flat);
  const ObjectCode object = generate_object(p, target);
  const LoadedCode code = load_object(object.bytes, object.symbol);
  Workspace workspace;
  std::vector<void*> pointers;
  for (const Array& a : arrays) pointers.push_back(a.raw());
  Module module;
  module.entry = reinterpret_cast<tenon_kernel>(code.entry);
  module.workspace_bytes = object.workspace.shared;
  module.workspace_bytes_per_worker = object.workspace.per_worker;
  call_unchecked(module, pointers.data(), nullptr, pool, workspace);
}

/// The targets whose code this machine runs: every level up to its own.
inline std::vector<Target> runnable_targets() {
  std::vector<Target> targets;
  for (const std::string& name : Target::known_names()) {
    const Target t = Target::parse(name);
    if (t.runs_on(Target::host())) targets.push_back(t);
  }
  return targets;
}

/// A copy of `a` that ends (or starts) at a page that may not be touched.
inline Array guarded_copy(const Array& a, GuardAt at = GuardAt::end) {
  Array g = guarded_array(a.dtype(), a.shape(), at);
  std::copy_n(static_cast<const char*>(a.raw()), a.bytes(), static_cast<char*>(g.raw()));
  return g;
}

}  // namespace tenon::test
