#include "codegen/llvm/emitter.h"

namespace tenon {

namespace {

struct Update {
  BinaryOp op;
  Expr operand;
};

// b[i] = b[i] op x, with the element on either side of a commutative op.
Update update_of(const Store& n) {
  auto is_element = [&](const Expr& e) {
    const Load* load = e.as<Load>();
    return load && load->buffer.same_as(n.buffer) &&
           structural_equal(load->indices[0], n.indices[0]);
  };
  if (const Binary* value = n.value.as<Binary>()) {
    const BinaryOp op = value->op;
    const bool commutes = op == BinaryOp::add || op == BinaryOp::mul || op == BinaryOp::min ||
                          op == BinaryOp::max || op == BinaryOp::logical_and ||
                          op == BinaryOp::logical_or;
    if (commutes && is_element(value->a)) return {op, value->b};
    if (commutes && is_element(value->b)) return {op, value->a};
  }
  throw InternalError(
      fmt::format("code generation: an atomic store to \"{}\" must update the element it reads, "
                  "b[i] = b[i] op x with a "
                  "commutative op; got {}",
                  n.buffer->name, print(n.value)));
}

}  // namespace

// Read, compute, compare-and-swap until nobody came between; lane by lane.
void Emitter::store_atomic(const Store& n) {
  const BufferNode& b = *n.buffer;
  const Update update = update_of(n);
  const int lanes = n.value.lanes();
  llvm::Value* operand = evaluate(update.operand);
  llvm::Value* mask = n.mask.defined() ? emit(n.mask) : nullptr;
  llvm::Value* pointers =
      lanes == 1 ? pointer(b, linear(n.indices[0])) : lane_pointers(b, n.indices[0], lanes);
  auto lane_of = [&](llvm::Value* v, int lane) {
    return v->getType()->isVectorTy() ? builder_.CreateExtractElement(v, lane) : v;
  };
  for (int lane = 0; lane < lanes; ++lane) {
    llvm::BasicBlock* after = nullptr;
    if (mask) {
      llvm::BasicBlock* on = new_block("lane");
      after = new_block("lane.done");
      builder_.CreateCondBr(lane_of(mask, lane), on, after);
      builder_.SetInsertPoint(on);
    }
    update_atomically(b.dtype, update.op, lane_of(pointers, lane), lane_of(operand, lane));
    if (!after) continue;
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }
}

void Emitter::update_atomically(DType t, BinaryOp op, llvm::Value* pointer, llvm::Value* operand) {
  llvm::Type* memory = memory_type(t);
  llvm::Type* word = builder_.getIntNTy(8 * byte_size(t));
  const llvm::Align align(byte_size(t));
  const auto order = llvm::AtomicOrdering::Monotonic;
  auto* first = builder_.CreateAlignedLoad(word, pointer, align);
  first->setAtomic(order);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* retry = new_block("retry");
  llvm::BasicBlock* done = new_block("updated");
  builder_.CreateBr(retry);
  builder_.SetInsertPoint(retry);
  llvm::PHINode* seen = builder_.CreatePHI(word, 2);
  seen->addIncoming(first, before);
  llvm::Value* old = from_memory(t, builder_.CreateBitCast(seen, memory));
  llvm::Value* fresh = to_memory(t, binary_op(op, {t, 1}, old, operand));
  auto* swap = builder_.CreateAtomicCmpXchg(pointer, seen, builder_.CreateBitCast(fresh, word),
                                            align, order, order);
  seen->addIncoming(builder_.CreateExtractValue(swap, 0), builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateExtractValue(swap, 1), done, retry);
  builder_.SetInsertPoint(done);
}

}  // namespace tenon
