#include <llvm/IR/Intrinsics.h>

#include "codegen/llvm/emitter.h"

namespace tenon {

using llvm::CmpInst;
using llvm::Intrinsic::ID;
namespace intrinsic = llvm::Intrinsic;

llvm::Type* Emitter::element_type(DType t) {
  if (is_bool(t)) return builder_.getInt1Ty();
  if (t == DType::f64) return builder_.getDoubleTy();
  if (is_float(t)) return builder_.getFloatTy();
  return builder_.getIntNTy(8 * byte_size(t));
}

llvm::Type* Emitter::wide(llvm::Type* t, int lanes) {
  return lanes == 1 ? t : llvm::FixedVectorType::get(t, lanes);
}

llvm::Type* Emitter::value_type(Type t) { return wide(element_type(t.dtype), t.lanes); }

llvm::Type* Emitter::memory_type(DType t) {
  if (is_bool(t)) return builder_.getInt8Ty();
  if (t == DType::f16) return builder_.getHalfTy();
  if (t == DType::bf16) return builder_.getInt16Ty();
  return element_type(t);
}

llvm::Constant* Emitter::int_splat(Type t, int64_t value) {
  return llvm::ConstantInt::get(value_type(t), static_cast<uint64_t>(value),
                                is_signed_int(t.dtype));
}

llvm::Constant* Emitter::float_splat(Type t, double value) {
  llvm::APFloat number(value);
  bool inexact = false;
  const auto nearest = llvm::APFloat::rmNearestTiesToEven;
  if (t.dtype == DType::f16) number.convert(llvm::APFloat::IEEEhalf(), nearest, &inexact);
  if (t.dtype == DType::bf16) number.convert(llvm::APFloat::BFloat(), nearest, &inexact);
  if (t.dtype != DType::f64) number.convert(llvm::APFloat::IEEEsingle(), nearest, &inexact);
  return llvm::ConstantFP::get(value_type(t), number);
}

llvm::Value* Emitter::splat(llvm::Value* v, int lanes) {
  if (lanes == 1) return v;
  llvm::Value* all = builder_.CreateVectorSplat(lanes, v);
  if (auto known = bits_.find(v); known != bits_.end())
    bits_[all] = builder_.CreateVectorSplat(lanes, known->second);
  return all;
}

// f16 by the conversion instructions; bf16 by adding just under half a unit of the kept bits (one
// more when the kept part is odd), NaN made quiet.
llvm::Value* Emitter::round_to(DType t, llvm::Value* v) {
  if (t != DType::f16 && t != DType::bf16) return v;
  return from_memory(t, to_memory(t, v));
}

llvm::Value* Emitter::to_memory(DType t, llvm::Value* v) {
  if (!is_bool(t) && t != DType::f16 && t != DType::bf16) return v;
  llvm::Type* type = memory_type(t);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  const int lanes = vector ? static_cast<int>(vector->getNumElements()) : 1;
  if (is_bool(t)) return builder_.CreateZExt(v, wide(type, lanes));
  if (t == DType::f16) return builder_.CreateFPTrunc(v, wide(type, lanes));
  if (llvm::Value* exact = known_bits(v)) return exact;
  llvm::Type* word = wide(builder_.getInt32Ty(), lanes);
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(word, n); };
  llvm::Value* bits = builder_.CreateBitCast(v, word);
  llvm::Value* odd = builder_.CreateAnd(builder_.CreateLShr(bits, number(16)), number(1));
  llvm::Value* rounded = builder_.CreateAdd(builder_.CreateAdd(bits, number(0x7fff)), odd);
  llvm::Value* quiet = builder_.CreateOr(bits, number(0x400000));
  llvm::Value* kept = builder_.CreateSelect(builder_.CreateFCmpUNO(v, v), quiet, rounded);
  return builder_.CreateTrunc(builder_.CreateLShr(kept, number(16)), wide(type, lanes));
}

llvm::Value* Emitter::from_memory(DType t, llvm::Value* v) {
  if (!is_bool(t) && t != DType::f16 && t != DType::bf16) return v;
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  const int lanes = vector ? static_cast<int>(vector->getNumElements()) : 1;
  if (is_bool(t)) return builder_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  if (t == DType::f16) return builder_.CreateFPExt(v, wide(builder_.getFloatTy(), lanes));
  llvm::Type* word = wide(builder_.getInt32Ty(), lanes);
  llvm::Value* bits =
      builder_.CreateShl(builder_.CreateZExt(v, word), llvm::ConstantInt::get(word, 16));
  llvm::Value* value = builder_.CreateBitCast(bits, wide(builder_.getFloatTy(), lanes));
  bits_[value] = v;
  return value;
}

// The bf16 bits that a float was made of, so that they go back without rounding; null where it was
// computed.
llvm::Value* Emitter::known_bits(llvm::Value* v) {
  if (auto known = bits_.find(v); known != bits_.end()) return known->second;
  const auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (!constant || !constant->isNullValue()) return nullptr;
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  const int lanes = vector ? static_cast<int>(vector->getNumElements()) : 1;
  return llvm::Constant::getNullValue(wide(memory_type(DType::bf16), lanes));
}

llvm::Value* Emitter::binary_op(BinaryOp op, Type t, llvm::Value* a, llvm::Value* b) {
  if (op == BinaryOp::logical_and || (op == BinaryOp::bit_and && is_bool(t.dtype)))
    return builder_.CreateAnd(a, b);
  if (op == BinaryOp::logical_or || (op == BinaryOp::bit_or && is_bool(t.dtype)))
    return builder_.CreateOr(a, b);
  if (op >= BinaryOp::eq && op <= BinaryOp::ge) return compare(op, t.dtype, a, b);
  if (t.dtype == DType::f16 || t.dtype == DType::bf16) {
    llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    builder_.clearFastMathFlags();  // the rounding between two operations is no excess precision
    return round_to(t.dtype, float_op(op, a, b));
  }
  if (is_float(t.dtype)) return float_op(op, a, b);
  return integer_op(op, t, a, b);
}

llvm::Value* Emitter::float_op(BinaryOp op, llvm::Value* a, llvm::Value* b) {
  switch (op) {
    case BinaryOp::add:
      return builder_.CreateFAdd(a, b);
    case BinaryOp::sub:
      return builder_.CreateFSub(a, b);
    case BinaryOp::mul:
      return builder_.CreateFMul(a, b);
    case BinaryOp::div:
      return builder_.CreateFDiv(a, b);
    case BinaryOp::min:
    case BinaryOp::max:
      return float_min_max(op == BinaryOp::max, a, b);
    default:
      break;
  }
  throw InternalError(fmt::format("code generation: {} of floats", name(op)));
}

llvm::Value* Emitter::compare(BinaryOp op, DType t, llvm::Value* a, llvm::Value* b) {
  struct Predicates {
    CmpInst::Predicate on_floats, on_signed, on_unsigned;
  };
  auto predicates = [](BinaryOp o) -> Predicates {
    switch (o) {
      case BinaryOp::eq:
        return {CmpInst::FCMP_OEQ, CmpInst::ICMP_EQ, CmpInst::ICMP_EQ};
      case BinaryOp::ne:
        return {CmpInst::FCMP_UNE, CmpInst::ICMP_NE, CmpInst::ICMP_NE};
      case BinaryOp::lt:
        return {CmpInst::FCMP_OLT, CmpInst::ICMP_SLT, CmpInst::ICMP_ULT};
      case BinaryOp::le:
        return {CmpInst::FCMP_OLE, CmpInst::ICMP_SLE, CmpInst::ICMP_ULE};
      case BinaryOp::gt:
        return {CmpInst::FCMP_OGT, CmpInst::ICMP_SGT, CmpInst::ICMP_UGT};
      default:
        return {CmpInst::FCMP_OGE, CmpInst::ICMP_SGE, CmpInst::ICMP_UGE};
    }
  };
  const Predicates p = predicates(op);
  if (is_float(t)) return builder_.CreateFCmp(p.on_floats, a, b);
  return builder_.CreateICmp(is_signed_int(t) ? p.on_signed : p.on_unsigned, a, b);
}

namespace {

// A constant (or splat of one) that is no NaN.
bool is_number(llvm::Value* v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (!constant) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number && !number->isNaN();
}

}  // namespace

// One maxps where one side is a known number: maxps gives its second operand when either is NaN.
// Otherwise the other operand's NaN needs a compare and a blend.
llvm::Value* Emitter::float_min_max(bool is_max, llvm::Value* a, llvm::Value* b) {
  if (is_number(a)) std::swap(a, b);
  if (is_number(b)) {  // the number wins only where it compares so
    llvm::Value* wins = is_max ? builder_.CreateFCmpOLT(a, b) : builder_.CreateFCmpOGT(a, b);
    return builder_.CreateSelect(wins, b, a);
  }
  llvm::Value* result =
      builder_.CreateBinaryIntrinsic(is_max ? intrinsic::maximum : intrinsic::minimum, a, b);
  llvm::cast<llvm::Instruction>(result)->setHasNoSignedZeros(true);  // of two zeros, either
  return result;
}

llvm::Value* Emitter::unary_op(UnaryOp op, Type t, llvm::Value* a) {
  const bool floats = is_float(t.dtype);
  auto call = [&](ID id) { return round_to(t.dtype, builder_.CreateUnaryIntrinsic(id, a)); };
  switch (op) {
    case UnaryOp::neg:
      return floats ? builder_.CreateFNeg(a) : builder_.CreateNeg(a);
    case UnaryOp::abs:
      if (floats) return call(intrinsic::fabs);
      if (is_unsigned_int(t.dtype)) return a;
      return builder_.CreateBinaryIntrinsic(intrinsic::abs, a, builder_.getFalse());
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
      return builder_.CreateNot(a);
    case UnaryOp::sqrt:
      return call(intrinsic::sqrt);
    case UnaryOp::floor:
      return call(intrinsic::floor);
    case UnaryOp::ceil:
      return call(intrinsic::ceil);
    case UnaryOp::trunc:
      return call(intrinsic::trunc);
    case UnaryOp::round:
      return call(intrinsic::roundeven);
    case UnaryOp::is_nan:
      return builder_.CreateFCmpUNO(a, a);
  }
  throw InternalError("code generation: unknown unary operation");
}

llvm::Value* Emitter::convert(Type from, DType to, llvm::Value* v) {
  const DType source = from.dtype;
  llvm::Type* type = value_type({to, from.lanes});
  llvm::Type* here = v->getType();
  if (is_bool(to)) {
    llvm::Constant* nothing = llvm::Constant::getNullValue(here);
    return is_float(source) ? builder_.CreateFCmpUNE(v, nothing)
                            : builder_.CreateICmpNE(v, nothing);
  }
  if (is_float(source) && is_float(to)) {
    if (type == here) return round_to(to, v);
    return to == DType::f64 ? builder_.CreateFPExt(v, type)
                            : round_to(to, builder_.CreateFPTrunc(v, type));
  }
  if (is_float(source)) {
    const ID id = is_signed_int(to) ? intrinsic::fptosi_sat : intrinsic::fptoui_sat;
    return builder_.CreateIntrinsic(id, {type, here}, {v});
  }
  if (is_float(to)) {
    return round_to(to, is_signed_int(source) ? builder_.CreateSIToFP(v, type)
                                              : builder_.CreateUIToFP(v, type));
  }
  return builder_.CreateIntCast(v, type, is_signed_int(source));
}

}  // namespace tenon
