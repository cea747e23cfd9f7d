#include <algorithm>

#include "codegen/llvm/emitter.h"

// A parallel loop becomes an internal function of type tenon_task. What its body needs of the
// values around it travels in a struct on the caller's stack:
//
//   for i in min..min+n parallel: BODY   ->   context = {min, workspace, values..., pointers...}
//                                             parallel_for(pool, n, task, &context)
//   task(context, begin, end, worker):  for i in min+begin..min+end: BODY

namespace tenon {

namespace {

/// The variables and buffers that a statement takes from around it, in order of first use.
struct Needs {
  std::vector<Var> vars;
  std::vector<const BufferNode*> buffers;
};

template <class T, class Same>
void add_once(std::vector<T>& list, const T& item, Same same) {
  if (std::none_of(list.begin(), list.end(), [&](const T& other) { return same(other, item); }))
    list.push_back(item);
}

template <class HasVar, class HasBuffer>
Needs needs_of(const Stmt& body, HasVar has_var, HasBuffer has_buffer) {
  Needs needs;
  auto buffer = [&](const Buffer& b) {
    if (has_buffer(b)) add_once(needs.buffers, b.get(), std::equal_to<>());
  };
  walk(
      body,
      [&](const Stmt& s) {
        if (const Store* n = s.as<Store>()) buffer(n->buffer);
        if (const PrefetchLine* n = s.as<PrefetchLine>()) buffer(n->buffer);
        return true;
      },
      [&](const Expr& e) {
        if (const Load* n = e.as<Load>()) buffer(n->buffer);
        if (const VarRef* n = e.as<VarRef>(); n && has_var(n->var))
          add_once(needs.vars, n->var, [](const Var& a, const Var& b) { return a.same_as(b); });
        return true;
      });
  return needs;
}

}  // namespace

void Emitter::emit_parallel(const For& n) {
  llvm::Value* min = evaluate(n.min);
  llvm::Value* count = evaluate(n.extent);
  auto constant = [&](const Var& v) { return llvm::isa<llvm::Constant>(frame_.vars.at(v.get())); };
  Needs needs = needs_of(
      n.body, [&](const Var& v) { return frame_.vars.count(v.get()) > 0 && !constant(v); },
      [&](const Buffer& b) { return frame_.homes.count(b.get()) > 0; });
  if (plan_.symbolic_workspace()) {  // places in the workspace depend on them
    for (const Var& v : plan_.dims)
      add_once(needs.vars, v, [](const Var& a, const Var& b) { return a.same_as(b); });
  }
  std::vector<llvm::Value*> values = {min, frame_.workspace};
  for (const Var& v : needs.vars) values.push_back(frame_.vars.at(v.get()));
  for (const BufferNode* b : needs.buffers) {
    if (!home(*b).pointer) {
      throw UserError(
          fmt::format("code generation: register buffer \"{}\" is used inside the parallel loop "
                      "\"{}\" but lives outside it\n  "
                      "try: allocate it inside that loop (compute_at), or put it in global scope",
                      b->name, n.var.name()));
    }
    values.push_back(home(*b).pointer);
  }
  std::vector<llvm::Type*> types;
  for (llvm::Value* v : values) types.push_back(v->getType());
  auto* type = llvm::StructType::get(context_, types);
  llvm::Value* context = llvm::IRBuilder<>(frame_.entry_end).CreateAlloca(type, nullptr, "context");
  for (size_t i = 0; i < values.size(); ++i) {
    builder_.CreateStore(values[i],
                         builder_.CreateStructGEP(type, context, static_cast<unsigned>(i)));
  }
  llvm::Function* task = emit_task(n, needs.vars, needs.buffers, type);
  auto* void_type = builder_.getVoidTy();
  auto* signature = llvm::FunctionType::get(
      void_type,
      {builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getPtrTy(), builder_.getPtrTy()},
      false);
  builder_.CreateCall(signature, frame_.parallel_for, {frame_.pool, count, task, context});
}

llvm::Function* Emitter::emit_task(const For& n, const std::vector<Var>& vars,
                                   const std::vector<const BufferNode*>& buffers,
                                   llvm::StructType* context_type) {
  const Frame outer = frame_;
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  auto* type = llvm::FunctionType::get(
      builder_.getVoidTy(),
      {builder_.getPtrTy(), builder_.getInt64Ty(), builder_.getInt64Ty(), builder_.getInt32Ty()},
      false);
  llvm::Function* task = begin_function(fmt::format("{}.task{}", symbol_, tasks_++), type, false);
  in_task_ = true;
  frame_.non_negative = outer.non_negative;
  llvm::BasicBlock* body = builder_.GetInsertBlock();
  builder_.SetInsertPoint(frame_.entry_end);
  llvm::Value* context = task->getArg(0);
  unsigned field = 0;
  auto next_value = [&] {
    llvm::Value* place = builder_.CreateStructGEP(context_type, context, field);
    llvm::Value* value = builder_.CreateLoad(context_type->getElementType(field++), place);
    frame_.depths[value] = 0;
    return value;
  };
  llvm::Value* min = next_value();
  frame_.workspace = next_value();
  for (const Var& v : vars) bind(v, next_value());
  for (const BufferNode* b : buffers) frame_.homes[b].pointer = next_value();
  for (const auto& [var, value] : outer.vars) {
    if (llvm::isa<llvm::Constant>(value)) frame_.vars[var] = value;
  }
  llvm::Value* worker =
      builder_.CreateMul(builder_.CreateSExt(task->getArg(3), builder_.getInt64Ty()),
                         evaluate(plan_.bytes_per_worker));
  llvm::Value* offset = builder_.CreateAdd(worker, evaluate(plan_.shared_bytes));
  frame_.worker_base = builder_.CreateGEP(builder_.getInt8Ty(), frame_.workspace, offset, "mine");
  llvm::Value* begin = builder_.CreateAdd(min, task->getArg(1));
  llvm::Value* end = builder_.CreateAdd(min, task->getArg(2));
  builder_.SetInsertPoint(body);
  emit_noted_loop(n, begin, end, true);
  emit_stream_fence();  // of a loop round this one
  finish_tiles();
  builder_.CreateRetVoid();
  finish_function();
  in_task_ = false;
  frame_ = outer;
  return task;
}

}  // namespace tenon
