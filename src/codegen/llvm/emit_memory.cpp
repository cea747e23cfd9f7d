#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "codegen/llvm/emitter.h"

namespace tenon {

namespace {

constexpr int kHarmlessBytes = 4096;

// What a load reads whose value nobody will use.
llvm::GlobalVariable* harmless_bytes(llvm::Module& module) {
  constexpr const char* kName = "tenon_zeros";
  if (auto* known = module.getGlobalVariable(kName, true)) return known;
  auto* type = llvm::ArrayType::get(llvm::Type::getInt8Ty(module.getContext()), kHarmlessBytes);
  auto* zeros = new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::InternalLinkage,
                                         llvm::ConstantAggregateZero::get(type), kName);
  zeros->setAlignment(llvm::Align(64));
  return zeros;
}

std::optional<int64_t> constant_stride(const std::optional<LaneForm>& form) {
  if (!form || !form->stride.is_constant()) return std::nullopt;
  return form->stride.constant;
}

}  // namespace

const Emitter::Home& Emitter::home(const BufferNode& b) {
  auto known = frame_.homes.find(&b);
  TENON_CHECK(known != frame_.homes.end(), "buffer \"{}\" does not exist here", b.name);
  return known->second;
}

void Emitter::note_alias(llvm::Instruction* access, const BufferNode& b) {
  if (auto scope = scopes_.find(&b); scope != scopes_.end())
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, scope->second);
  if (auto others = others_.find(&b); others != others_.end() && others->second)
    access->setMetadata(llvm::LLVMContext::MD_noalias, others->second);
}

llvm::Value* Emitter::lane_mask(llvm::Value* mask, int lanes) {
  return mask->getType()->isVectorTy() ? mask : splat(mask, lanes);
}

llvm::Value* Emitter::scalar_condition(llvm::Value* mask) {
  return mask->getType()->isVectorTy() ? builder_.CreateOrReduce(mask) : mask;
}

llvm::Value* Emitter::guarded_pointer(llvm::Value* pointer, llvm::Value* condition) {
  return condition ? builder_.CreateSelect(condition, pointer, harmless_bytes(module_)) : pointer;
}

llvm::Value* Emitter::emit_load(const Load& n, int lanes) {
  const BufferNode& b = *n.buffer;
  TENON_CHECK(n.indices.size() == 1, "load of \"{}\" with {} indices in flat code", b.name,
              n.indices.size());
  llvm::Value* mask = n.mask.defined() ? emit(n.mask) : nullptr;
  if (in_registers(b)) {
    llvm::Value* value = read_register(b, register_indices(b, n.indices[0], lanes));
    return mask ? builder_.CreateSelect(mask, value, llvm::Constant::getNullValue(value->getType()))
                : value;
  }
  return lanes == 1 ? load_scalar(b, n.indices[0], mask)
                    : load_vector(b, n.indices[0], lanes, mask);
}

/// For reading, into all levels of cache. The address may be anything: it is no `inbounds` one.
void Emitter::emit_prefetch(const PrefetchLine& n) {
  memo_.assign(1, {});
  llvm::Value* place = pointer(*n.buffer, linear(n.indices[0]));
  builder_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {place->getType()},
      {place, builder_.getInt32(0), builder_.getInt32(3), builder_.getInt32(1)});
}

llvm::Value* Emitter::load_scalar(const BufferNode& b, const Expr& index, llvm::Value* mask) {
  const Linear at = linear(index);
  llvm::Value* condition = predicate_ ? scalar_condition(predicate_) : nullptr;
  if (mask) condition = condition ? builder_.CreateAnd(condition, mask) : mask;
  llvm::Value* place = guarded_pointer(pointer(b, at), condition);
  auto* load = builder_.CreateAlignedLoad(memory_type(b.dtype), place, alignment(b, at));
  note_alias(load, b);
  if (!mask) return from_memory(b.dtype, load);
  llvm::Constant* off = llvm::Constant::getNullValue(load->getType());
  return from_memory(b.dtype, builder_.CreateSelect(mask, load, off));
}

llvm::Value* Emitter::load_vector(const BufferNode& b, const Expr& index, int lanes,
                                  llvm::Value* mask) {
  const auto form = lane_form(index);
  const auto stride = constant_stride(form);
  llvm::Value* condition = nullptr;  // a scalar one, beside the lanes' mask
  if (mask) mask = lane_mask(mask, lanes);
  if (predicate_) {
    const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(predicate_->getType());
    if (type && static_cast<int>(type->getNumElements()) == lanes) {
      mask = mask ? builder_.CreateAnd(mask, predicate_) : predicate_;
    } else {
      condition = scalar_condition(predicate_);
    }
  }
  if (mask && condition) {
    mask = builder_.CreateAnd(mask, splat(condition, lanes));
    condition = nullptr;
  }
  const bool small = lanes * byte_size(b.dtype) <= kHarmlessBytes;
  if (condition && (!small || !stride || *stride * *stride != 1)) mask = splat(condition, lanes);
  if (stride == 1 || stride == -1) {
    Linear base = form->base;
    if (stride == -1) base.constant -= lanes - 1;
    std::vector<int> reversed(lanes);
    for (int i = 0; i < lanes; ++i) reversed[i] = lanes - 1 - i;
    if (stride == -1 && mask) mask = builder_.CreateShuffleVector(mask, reversed);
    llvm::Value* value = load_contiguous(b, base, lanes, mask, condition);
    if (stride == -1) value = builder_.CreateShuffleVector(value, reversed);
    return from_memory(b.dtype, value);
  }
  if (stride == 2 && lanes % 2 == 0 && (!mask || target_.has_masks))
    return from_memory(b.dtype, load_every_second(b, form->base, lanes, mask));
  return from_memory(b.dtype, gather(b, lane_pointers(b, index, lanes), lanes, mask));
}

// Elements 0, 2, ..., 2*(lanes-1): the even ones of a vector at 0, then the odd ones of a vector at
// lanes-1. Neither reads past the last element; one shuffle costs a tenth of a gather.
llvm::Value* Emitter::load_every_second(const BufferNode& b, const Linear& base, int lanes,
                                        llvm::Value* mask) {
  std::vector<int> pick(lanes), low_mask(lanes), high_mask(lanes);
  for (int i = 0; i < lanes; ++i) {
    pick[i] = i < lanes / 2 ? 2 * i : 2 * i + 1;
    low_mask[i] = i % 2 == 0 ? i / 2 : lanes;  // `lanes` is an element that is off
    high_mask[i] = i % 2 == 1 ? (i + lanes - 1) / 2 : lanes;
  }
  llvm::Value *low = nullptr, *high = nullptr;
  if (mask) {
    llvm::Value* off = llvm::Constant::getNullValue(mask->getType());
    low = builder_.CreateShuffleVector(mask, off, low_mask);
    high = builder_.CreateShuffleVector(mask, off, high_mask);
  }
  Linear second = base;
  second.constant += lanes - 1;
  return builder_.CreateShuffleVector(load_contiguous(b, base, lanes, low, nullptr),
                                      load_contiguous(b, second, lanes, high, nullptr), pick);
}

llvm::Value* Emitter::load_contiguous(const BufferNode& b, const Linear& base, int lanes,
                                      llvm::Value* mask, llvm::Value* condition) {
  llvm::Type* type = wide(memory_type(b.dtype), lanes);
  const llvm::Align align = alignment(b, base);
  llvm::Value* place = pointer(b, base);
  llvm::Instruction* load = nullptr;
  if (mask)
    load = builder_.CreateMaskedLoad(type, place, align, mask, llvm::Constant::getNullValue(type));
  else
    load = builder_.CreateAlignedLoad(type, guarded_pointer(place, condition), align);
  note_alias(load, b);
  return load;
}

llvm::Value* Emitter::gather(const BufferNode& b, llvm::Value* pointers, int lanes,
                             llvm::Value* mask) {
  llvm::Type* type = wide(memory_type(b.dtype), lanes);
  if (!mask) mask = llvm::ConstantInt::getTrue(wide(builder_.getInt1Ty(), lanes));
  auto* load = builder_.CreateMaskedGather(type, pointers, llvm::Align(byte_size(b.dtype)), mask,
                                           llvm::Constant::getNullValue(type));
  note_alias(load, b);
  return load;
}

// A common base and constant offsets where the form of the index allows it: the gather then needs
// one register of 32-bit offsets.
llvm::Value* Emitter::lane_pointers(const BufferNode& b, const Expr& index, int lanes) {
  llvm::Type* element = memory_type(b.dtype);
  if (const auto form = lane_form(index)) {
    std::vector<llvm::Constant*> numbers;
    for (int i = 0; i < lanes; ++i) numbers.push_back(builder_.getInt64(i));
    llvm::Value* stride = splat(to_value(form->stride), lanes);
    llvm::Value* offsets = builder_.CreateMul(stride, llvm::ConstantVector::get(numbers));
    return builder_.CreateGEP(element, pointer(b, form->base), offsets);
  }
  return builder_.CreateGEP(element, home(b).pointer, emit(index));
}

void Emitter::emit_store(const Store& n) {
  const BufferNode& b = *n.buffer;
  TENON_CHECK(n.indices.size() == 1, "store to \"{}\" with {} indices in flat code", b.name,
              n.indices.size());
  if (n.atomic) return store_atomic(n);
  const int lanes = std::max(n.value.lanes(), n.indices[0].lanes());
  llvm::Value* value = evaluate(n.value);
  llvm::Value* mask = n.mask.defined() ? emit(n.mask) : nullptr;
  if (n.value.lanes() != lanes) value = splat(value, lanes);
  if (in_registers(b)) {
    const auto at = register_indices(b, n.indices[0], lanes);
    if (mask) value = builder_.CreateSelect(mask, value, read_register(b, at));
    return write_register(b, at, value);
  }
  value = to_memory(b.dtype, value);
  if (lanes == 1)
    store_scalar(b, n.indices[0], value, mask);
  else
    store_vector(b, n.indices[0], value, mask ? lane_mask(mask, lanes) : nullptr, lanes);
}

void Emitter::store_scalar(const BufferNode& b, const Expr& index, llvm::Value* value,
                           llvm::Value* mask) {
  const Linear at = linear(index);
  llvm::Value* place = pointer(b, at);
  llvm::BasicBlock* after = nullptr;
  if (mask) {
    llvm::BasicBlock* store = new_block("store");
    after = new_block("stored");
    builder_.CreateCondBr(mask, store, after);
    builder_.SetInsertPoint(store);
  }
  note_alias(builder_.CreateAlignedStore(value, place, alignment(b, at)), b);
  if (after) {
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }
}

// Whether lanes that are so many elements apart fill a word each, and a register has masks for its
// single elements.
bool Emitter::interleaves(std::optional<int64_t> stride, int bytes, int lanes) const {
  if (!stride || *stride < 2 || lanes < 4) return false;
  const int64_t word = *stride * bytes;
  return (word == 4 || word == 8) && bytes < 4 && target_.has_feature("avx512bw");
}

// Each lane widened to a word, shifted to its place there; a masked store of a register's words at
// a time. One scatter of 16 bytes costs ten of these.
void Emitter::store_interleaved(const BufferNode& b, const Linear& base, int64_t stride,
                                llvm::Value* value, llvm::Value* mask) {
  const int lanes =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements());
  const int bytes = byte_size(b.dtype), word = static_cast<int>(stride) * bytes;
  const int per_store = std::min(lanes, target_.vector_bits / 8 / word);
  const bool whole_words = std::all_of(base.terms.begin(), base.terms.end(),
                                       [&](const auto& t) { return t.coefficient % stride == 0; });
  const int64_t place = whole_words && base.constant > 0 ? base.constant % stride : 0;
  value = builder_.CreateBitCast(value, wide(builder_.getIntNTy(8U * bytes), lanes));  // of f16
  llvm::Type* words = wide(builder_.getIntNTy(8U * word), per_store);
  llvm::Type* elements = wide(memory_type(b.dtype), per_store * static_cast<int>(stride));
  for (int first = 0; first < lanes; first += per_store) {
    std::vector<int> piece(per_store), spread;
    for (int i = 0; i < per_store; ++i) piece[i] = first + i;
    for (int i = 0; i < per_store * stride; ++i)
      spread.push_back(i % stride == place ? static_cast<int>(i / stride) : per_store);
    llvm::Value* part = builder_.CreateZExt(builder_.CreateShuffleVector(value, piece), words);
    part = builder_.CreateShl(part, static_cast<uint64_t>(8 * bytes * place));
    llvm::Value* on = mask ? builder_.CreateShuffleVector(mask, piece)
                           : llvm::ConstantInt::getTrue(wide(builder_.getInt1Ty(), per_store));
    on = builder_.CreateShuffleVector(on, llvm::Constant::getNullValue(on->getType()), spread);
    Linear at = base;
    at.constant += first * stride - place;
    note_alias(builder_.CreateMaskedStore(builder_.CreateBitCast(part, elements), pointer(b, at),
                                          alignment(b, at), on),
               b);
  }
}

void Emitter::store_vector(const BufferNode& b, const Expr& index, llvm::Value* value,
                           llvm::Value* mask, int lanes) {
  const auto form = lane_form(index);
  llvm::Instruction* store = nullptr;
  if (constant_stride(form) == 1) {
    llvm::Value* place = pointer(b, form->base);
    const llvm::Align align = alignment(b, form->base);
    if (mask)
      store = builder_.CreateMaskedStore(value, place, align, mask);
    else
      store = builder_.CreateAlignedStore(value, place, align);
    if (auto* whole = llvm::dyn_cast<llvm::StoreInst>(store))
      stream_store(whole, b, form->base, lanes);
  } else if (interleaves(constant_stride(form), byte_size(b.dtype), lanes)) {
    return store_interleaved(b, form->base, *constant_stride(form), value, mask);
  } else {  // in lane order where lanes meet
    store = builder_.CreateMaskedScatter(value, lane_pointers(b, index, lanes),
                                         llvm::Align(byte_size(b.dtype)), mask);
  }
  note_alias(store, b);
}

}  // namespace tenon
