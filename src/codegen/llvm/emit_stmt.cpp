#include "codegen/llvm/emitter.h"

namespace tenon {

void Emitter::emit(const Stmt& s) {
  if (!s.defined()) return;
  std::visit(
      overloaded{
          [&](const For& n) { emit_for(n); }, [&](const Store& n) { emit_store(n); },
          [&](const Seq& n) {
            for (const Stmt& part : n.stmts) emit(part);
          },
          [&](const If& n) { emit_if(n); }, [&](const Allocate& n) { emit_allocate(n); },
          [&](const Evaluate& n) { evaluate(n.value); }, [&](const LetStmt& n) { emit_let(n); },
          [&](const PrefetchLine& n) { emit_prefetch(n); },
          [](const Barrier&) { throw InternalError("code generation: Barrier in code for a CPU"); },
          [](const Stage& n) {
            throw InternalError(fmt::format("code generation: stage \"{}\" in flat code", n.name));
          }},
      s.node().v);
}

void Emitter::bind(const Var& v, llvm::Value* value) { frame_.vars[v.get()] = value; }

void Emitter::unbind(const Var& v) {
  frame_.vars.erase(v.get());
  frame_.non_negative.erase(v.get());
  frame_.linear_vars.erase(v.get());
}

void Emitter::emit_let(const LetStmt& n) {
  memo_.assign(1, {});
  if (non_negative(n.value)) frame_.non_negative.insert(n.var.get());
  if (n.value.type() == Type{DType::i64, 1}) {
    const Linear form = linear(n.value);
    bind(n.var, to_value(form));
    frame_.linear_vars[n.var.get()] = form;
  } else {
    bind(n.var, emit(n.value));
  }
  emit(n.body);
  unbind(n.var);
}

void Emitter::emit_for(const For& n) {
  const auto extent = as_int(n.extent);
  if (extent && *extent <= 0) return;
  if (n.mark == LoopMark::parallel && !in_task_) return emit_parallel(n);
  if (n.intrinsic) return emit_tiles(n);
  if (extent && (*extent == 1 || plan_.unrolled.count(&n))) return emit_unrolled(n, *extent);
  llvm::Value* begin = evaluate(n.min);
  llvm::Value* count = evaluate(n.extent);
  emit_noted_loop(n, begin, builder_.CreateAdd(begin, count), !extent);
}

/// Iteration i of a loop that is expanded.
void Emitter::bind_step(const For& n, const Linear& min, int64_t i) {
  Linear at = min;
  at.constant += i;
  bind(n.var, to_value(at));
  frame_.linear_vars[n.var.get()] = at;
  if (non_negative(n.min)) frame_.non_negative.insert(n.var.get());
}

void Emitter::emit_unrolled(const For& n, int64_t extent) {
  if (emit_transposed(n, extent)) return;
  memo_.assign(1, {});
  const Linear min = linear(n.min);
  const bool apart = n.kind == AxisKind::reduce && registers_are_short();
  for (int64_t i = 0; i < extent; ++i) {
    if (apart) keep_loads_apart();
    bind_step(n, min, i);
    emit(n.body);
  }
  unbind(n.var);
}

/// Do the register buffers alive here leave less than half of the vector registers?
bool Emitter::registers_are_short() const {
  size_t parts = 0;
  for (const auto& [buffer, h] : frame_.homes) parts += h.parts.size();
  return parts * 2 > static_cast<size_t>(target_.vector_registers);
}

/// Between two steps of a sum into a register tile: a fence without code. A load that a step shares
/// with a later one would be kept in a register that the tile needs, and spilled; reading the first
/// cache again costs less. It also keeps the scheduler from mixing the steps.
void Emitter::keep_loads_apart() {
  builder_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

/// preheader -> loop (phi) ... -> back or after: tested at the bottom, so that what does not change
/// can leave.
void Emitter::emit_loop(const For& n, llvm::Value* begin, llvm::Value* end, bool may_be_empty,
                        const std::function<void()>& body) {
  llvm::BasicBlock* preheader = new_block((n.var.name() + ".enter").c_str());
  llvm::BasicBlock* loop = new_block(n.var.name().c_str());
  llvm::BasicBlock* after = new_block((n.var.name() + ".done").c_str());
  if (may_be_empty)
    builder_.CreateCondBr(builder_.CreateICmpSLT(begin, end), preheader, after);
  else
    builder_.CreateBr(preheader);
  builder_.SetInsertPoint(preheader);
  builder_.CreateBr(loop);
  builder_.SetInsertPoint(loop);
  llvm::PHINode* at = builder_.CreatePHI(builder_.getInt64Ty(), 2, n.var.name());
  at->addIncoming(begin, preheader);
  frame_.depths[at] = ++frame_.loop_depth;
  if (non_negative(n.min)) frame_.non_negative.insert(n.var.get());
  bind(n.var, at);
  body ? body() : emit(n.body);
  unbind(n.var);
  --frame_.loop_depth;
  llvm::Value* next = builder_.CreateAdd(at, builder_.getInt64(1), "", true, true);
  at->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, end), loop, after);
  builder_.SetInsertPoint(after);
}

void Emitter::emit_if(const If& n) {
  llvm::Value* condition = evaluate(n.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return emit(known->isOne() ? n.then_case : n.else_case);
  llvm::BasicBlock* yes = new_block("then");
  llvm::BasicBlock* no = n.else_case.defined() ? new_block("else") : nullptr;
  llvm::BasicBlock* after = new_block("endif");
  builder_.CreateCondBr(condition, yes, no ? no : after);
  builder_.SetInsertPoint(yes);
  emit(n.then_case);
  builder_.CreateBr(after);
  if (no) {
    builder_.SetInsertPoint(no);
    emit(n.else_case);
    builder_.CreateBr(after);
  }
  builder_.SetInsertPoint(after);
}

void Emitter::emit_allocate(const Allocate& n) {
  const BufferNode& b = *n.buffer;
  llvm::IRBuilder<> top(frame_.entry_end);
  Home h;
  if (in_registers(b)) {
    auto shape = const_shape(b.shape);
    TENON_CHECK(shape, "register buffer \"{}\" of symbolic size", b.name);
    int64_t elements = 1;
    for (int64_t extent : *shape) elements *= extent;
    const auto lanes = plan_.register_lanes.find(&b);
    h.part_lanes = lanes == plan_.register_lanes.end() ? 1 : lanes->second;
    for (int64_t i = 0; i < (elements + h.part_lanes - 1) / h.part_lanes; ++i) {
      h.parts.push_back(top.CreateAlloca(value_type({b.dtype, h.part_lanes}), nullptr, b.name));
      frame_.register_parts.push_back(h.parts.back());
    }
  } else {
    const WorkspaceSlot& slot = plan_.slots.at(&b);
    TENON_CHECK(slot.per_worker == in_task_,
                "buffer \"{}\" is allocated inside and outside parallel loops", b.name);
    llvm::Value* base = slot.per_worker ? frame_.worker_base : frame_.workspace;
    llvm::Value* offset = evaluate_at_entry(slot.offset);
    h.pointer = top.CreateGEP(top.getInt8Ty(), base, offset, b.name);
    frame_.depths[h.pointer] = 0;
    if (poison_)
      builder_.CreateMemSet(h.pointer, builder_.getInt8(0xff), evaluate_at_entry(slot.bytes),
                            llvm::MaybeAlign(64));
  }
  frame_.homes[&b] = std::move(h);
  emit(n.body);
  frame_.homes.erase(&b);
}

}  // namespace tenon
