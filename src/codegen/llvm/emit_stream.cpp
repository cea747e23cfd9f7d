#include <llvm/IR/IntrinsicsX86.h>
#include <tenon/ir/notes.h>

#include <algorithm>

#include "codegen/llvm/emitter.h"

// Whole vectors of an output that a loop noted "stream" writes and does not read go to memory past
// the caches: their lines are not read first, and nothing else is put out of the caches for them.
// Such stores need whole vectors' alignment, which is asked of the arrays at run time:
//
//   for i in 0..n  stream=1       if Y starts at a multiple of 64 bytes
//     Y[ramp(i*16, 1, 16)]   ->     for i in 0..n: stores past the caches;  a fence
//         = ..                    else
//                                   for i in 0..n: stores
//
// Stores of parts of vectors, and of vectors that are not sure to start at such a multiple, stay.
// The fence stands in the thread that stored, before it says that it is done.

namespace tenon {

/// The outputs that the loop writes in vectors and does not read, and that are no input's array.
std::set<const BufferNode*> Emitter::streamed_buffers(const For& n) const {
  std::set<const BufferNode*> read, written;
  for (const auto& [input, output] : in_place_) read.insert(program_.params[output].buffer.get());
  walk(
      n.body,
      [&](const Stmt& s) {
        const Store* store = s.as<Store>();
        if (store && store->atomic) read.insert(store->buffer.get());
        if (store && store->indices[0].lanes() > 1) written.insert(store->buffer.get());
        return true;
      },
      [&](const Expr& e) {
        if (const Load* l = e.as<Load>()) read.insert(l->buffer.get());
        return true;
      });
  std::set<const BufferNode*> outputs;
  for (const Param& p : program_.params) {
    const BufferNode* b = p.buffer.get();
    if (p.role == ParamRole::output && written.count(b) && !read.count(b)) outputs.insert(b);
  }
  return outputs;
}

void Emitter::emit_noted_loop(const For& n, llvm::Value* begin, llvm::Value* end,
                              bool may_be_empty) {
  std::set<const BufferNode*> streamed;
  if (n.notes.count(std::string(kStreamNote)) && streamed_.empty()) streamed = streamed_buffers(n);
  if (streamed.empty()) return emit_loop(n, begin, end, may_be_empty);
  llvm::BasicBlock *before = builder_.GetInsertBlock(), *past = new_block("past_caches");
  builder_.SetInsertPoint(past);
  streamed_ = streamed;
  streaming_stores_ = 0;
  emit_loop(n, begin, end, may_be_empty);
  emit_stream_fence();
  streamed_.clear();
  llvm::BasicBlock* after = builder_.GetInsertBlock();
  builder_.SetInsertPoint(before);
  if (streaming_stores_ == 0) {  // none could be
    builder_.CreateBr(past);
    return builder_.SetInsertPoint(after);
  }
  llvm::Value* bits = builder_.getInt64(0);
  for (const Param& p : program_.params)
    if (streamed.count(p.buffer.get()))
      bits = builder_.CreateOr(
          bits, builder_.CreatePtrToInt(home(*p.buffer).pointer, builder_.getInt64Ty()));
  bits = builder_.CreateAnd(bits, builder_.getInt64(target_.vector_bits / 8 - 1));
  llvm::BasicBlock *plain = new_block("into_caches"), *stored = new_block("stored");
  builder_.CreateCondBr(builder_.CreateICmpEQ(bits, builder_.getInt64(0)), past, plain);
  builder_.SetInsertPoint(after);
  builder_.CreateBr(stored);
  builder_.SetInsertPoint(plain);
  emit_loop(n, begin, end, may_be_empty);
  builder_.CreateBr(stored);
  builder_.SetInsertPoint(stored);
}

/// Where this thread has stored past the caches: others see it from here on.
void Emitter::emit_stream_fence() {
  if (!streamed_.empty() && streaming_stores_ > 0)
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

/// Makes an unmasked store of whole vectors one past the caches, where its address is sure to be a
/// multiple of theirs once the array's is.
void Emitter::stream_store(llvm::StoreInst* store, const BufferNode& b, const Linear& at,
                           int lanes) {
  const int64_t vector = target_.vector_bits / 8, size = byte_size(b.dtype);
  const auto whole = [&](int64_t elements) { return elements * size % vector == 0; };
  if (!streamed_.count(&b) || !whole(lanes) || !whole(at.constant)) return;
  for (const Linear::Term& t : at.terms)
    if (!whole(t.coefficient)) return;
  ++streaming_stores_;
  store->setAlignment(llvm::Align(static_cast<uint64_t>(vector)));
  store->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(context_, llvm::ConstantAsMetadata::get(builder_.getInt32(1))));
}

}  // namespace tenon
