#include <llvm/IR/Intrinsics.h>
#include <tenon/ir/intrinsic.h>

#include <algorithm>

#include "codegen/llvm/emitter.h"

namespace tenon {
namespace {

// Whether `lanes` are 0 .. n-1 again and again.
bool repeats(const std::vector<int>& lanes, int n) {
  for (size_t k = 0; k < lanes.size(); ++k)
    if (lanes[k] != static_cast<int>(k) % n) return false;
  return lanes.size() > static_cast<size_t>(n);
}

[[noreturn]] void refuse(const Intrinsic& intrinsic, const IntrinsicImplementation& code,
                         const std::string& why) {
  throw UserError(fmt::format("code generation: intrinsic \"{}\" cannot call {}: {}",
                              intrinsic.name, code.llvm, why));
}

// The type of the function that LLVM knows by that name; of one with many forms, the one that takes
// these operands.
llvm::Function* declare(llvm::Module& module, const Intrinsic& intrinsic,
                        const IntrinsicImplementation& code, llvm::Type* result,
                        const std::vector<llvm::Value*>& operands) {
  const llvm::Intrinsic::ID id = llvm::Function::lookupIntrinsicID(code.llvm);
  if (id == llvm::Intrinsic::not_intrinsic) refuse(intrinsic, code, "LLVM has none of that name");
  if (!llvm::Intrinsic::isOverloaded(id)) return llvm::Intrinsic::getDeclaration(&module, id);
  std::vector<llvm::Type*> types;
  for (llvm::Value* v : operands) types.push_back(v->getType());
  auto callee =
      module.getOrInsertFunction(code.llvm, llvm::FunctionType::get(result, types, false));
  return llvm::cast<llvm::Function>(callee.getCallee());
}

}  // namespace

llvm::Value* Emitter::emit_shuffle(const Shuffle& n, int lanes) {
  llvm::Value* value = emit(n.value);
  if (n.value.lanes() == 1) return splat(value, lanes);
  llvm::Value* moved = shuffled(value, n, lanes);
  if (auto known = bits_.find(value); known != bits_.end())
    bits_[moved] = shuffled(known->second, n, lanes);
  return moved;
}

llvm::Value* Emitter::shuffled(llvm::Value* value, const Shuffle& n, int lanes) {
  if (lanes == 1) return builder_.CreateExtractElement(value, n.lanes[0]);
  const unsigned bits = value->getType()->getScalarSizeInBits() * n.value.lanes();
  const bool one_number = bits == 16 || bits == 32 || bits == 64;
  if (one_number && lanes % n.value.lanes() == 0 && repeats(n.lanes, n.value.lanes())) {
    llvm::Value* whole = builder_.CreateBitCast(value, builder_.getIntNTy(bits));
    return builder_.CreateBitCast(splat(whole, lanes / n.value.lanes()),
                                  wide(value->getType()->getScalarType(), lanes));
  }
  return builder_.CreateShuffleVector(value, n.lanes);
}

llvm::Value* Emitter::emit_intrinsic(const IntrinsicCall& n, Type t) {
  const Intrinsic& intrinsic = *n.intrinsic;
  const IntrinsicImplementation& code =
      intrinsic.implementations.at(static_cast<size_t>(n.implementation));
  for (const std::string& feature : code.features)
    TENON_CHECK(target_.has_feature(feature), "intrinsic {} on a target without {}", intrinsic.name,
                feature);
  const IntrinsicParts parts = parts_of(intrinsic);
  const size_t first = parts.stage->combiner ? 1 : 0;
  std::vector<llvm::Value*> operands;
  bool updates = false;
  for (const std::string& name : code.operands) {
    const auto input = std::find_if(parts.inputs.begin(), parts.inputs.end(),
                                    [&](const Buffer& b) { return b->name == name; });
    updates |= input == parts.inputs.end();
    const size_t at =
        input == parts.inputs.end() ? 0 : first + static_cast<size_t>(input - parts.inputs.begin());
    operands.push_back(to_memory(n.args[at].dtype(), emit(n.args[at])));
  }
  llvm::Type* result = wide(memory_type(t.dtype), t.lanes);
  llvm::Function* callee = declare(module_, intrinsic, code, result, operands);
  const llvm::FunctionType* type = callee->getFunctionType();
  const auto fits = [](llvm::Type* a, llvm::Type* b) {
    return llvm::CastInst::isBitCastable(a, b);
  };
  if (type->getNumParams() != operands.size() || !fits(type->getReturnType(), result))
    refuse(intrinsic, code, "it has another number of operands or another result");
  for (unsigned k = 0; k < type->getNumParams(); ++k) {
    if (!fits(operands[k]->getType(), type->getParamType(k)))
      refuse(intrinsic, code, fmt::format("operand \"{}\" has another size", code.operands[k]));
    operands[k] = builder_.CreateBitCast(operands[k], type->getParamType(k));
  }
  llvm::Value* value =
      from_memory(t.dtype, builder_.CreateBitCast(builder_.CreateCall(callee, operands), result));
  if (!first || updates) return value;
  return binary_op(*combiner_op(*parts.stage->combiner), t, emit(n.args[0]), value);
}

}  // namespace tenon
