#include <llvm/IR/Intrinsics.h>
#include <llvm/Support/MathExtras.h>

#include "codegen/llvm/emitter.h"

namespace tenon {

namespace intrinsic = llvm::Intrinsic;

namespace {

const llvm::ConstantInt* constant_of(llvm::Value* v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  return llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
}

}  // namespace

llvm::Value* Emitter::integer_op(BinaryOp op, Type t, llvm::Value* a, llvm::Value* b) {
  const bool is_signed = is_signed_int(t.dtype);
  // A shift by the width or more has no value; it must not be poison either.
  auto amount = [&] { return builder_.CreateAnd(b, int_splat(t, 8 * byte_size(t.dtype) - 1)); };
  switch (op) {
    case BinaryOp::add:
      return builder_.CreateAdd(a, b);
    case BinaryOp::sub:
      return builder_.CreateSub(a, b);
    case BinaryOp::mul:
      return builder_.CreateMul(a, b);
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::trunc_div:
    case BinaryOp::trunc_mod:
      return divide(op, t, a, b);
    case BinaryOp::min:
      return builder_.CreateBinaryIntrinsic(is_signed ? intrinsic::smin : intrinsic::umin, a, b);
    case BinaryOp::max:
      return builder_.CreateBinaryIntrinsic(is_signed ? intrinsic::smax : intrinsic::umax, a, b);
    case BinaryOp::bit_and:
      return builder_.CreateAnd(a, b);
    case BinaryOp::bit_or:
      return builder_.CreateOr(a, b);
    case BinaryOp::bit_xor:
      return builder_.CreateXor(a, b);
    case BinaryOp::shl:
      return builder_.CreateShl(a, amount());
    case BinaryOp::shr:
      return is_signed ? builder_.CreateAShr(a, amount()) : builder_.CreateLShr(a, amount());
    default:
      break;
  }
  throw InternalError(fmt::format("code generation: {} of {}", name(op), name(t.dtype)));
}

// The hardware faults on division by 0 and on lowest / -1: divisors 0 and -1 are replaced by 1 and
// the quotient by -1 is the wrapped negation. Division by 0 has no defined value; here it gives a
// / 1.
llvm::Value* Emitter::divide(BinaryOp op, Type t, llvm::Value* a, llvm::Value* b) {
  const bool remainder = op == BinaryOp::floor_mod || op == BinaryOp::trunc_mod;
  const bool floors = op == BinaryOp::floor_div || op == BinaryOp::floor_mod;
  llvm::Constant* zero = int_splat(t, 0);
  llvm::Constant* one = int_splat(t, 1);
  const llvm::ConstantInt* constant = constant_of(b);
  const bool known =
      constant && !constant->isZero() && !(is_signed_int(t.dtype) && constant->isMinusOne());
  if (!is_signed_int(t.dtype)) {
    llvm::Value* safe = known ? b : builder_.CreateSelect(builder_.CreateICmpEQ(b, zero), one, b);
    return remainder ? builder_.CreateURem(a, safe) : builder_.CreateUDiv(a, safe);
  }
  if (known && floors && constant->getValue().isStrictlyPositive() &&
      constant->getValue().isPowerOf2()) {  // a positive power of two
    const int shift = static_cast<int>(constant->getValue().logBase2());
    if (remainder) return builder_.CreateAnd(a, int_splat(t, (int64_t{1} << shift) - 1));
    return builder_.CreateAShr(a, int_splat(t, shift));
  }
  llvm::Value* minus = known ? nullptr : builder_.CreateICmpEQ(b, int_splat(t, -1));
  llvm::Value* safe = b;
  if (!known) {
    llvm::Value* unsafe = builder_.CreateOr(builder_.CreateICmpEQ(b, zero), minus);
    safe = builder_.CreateSelect(unsafe, one, b);
  }
  llvm::Value* q = builder_.CreateSDiv(a, safe);
  llvm::Value* r = builder_.CreateSub(a, builder_.CreateMul(q, safe));
  if (floors) {
    llvm::Value* differ = builder_.CreateICmpSLT(builder_.CreateXor(r, safe), zero);
    llvm::Value* low = builder_.CreateAnd(builder_.CreateICmpNE(r, zero), differ);
    if (remainder)
      r = builder_.CreateSelect(low, builder_.CreateAdd(r, safe), r);
    else
      q = builder_.CreateSelect(low, builder_.CreateSub(q, one), q);
  }
  if (remainder) return r;  // by -1 and by 1 it is 0
  return known ? q : builder_.CreateSelect(minus, builder_.CreateNeg(a), q);
}

/// Index arithmetic that cannot be negative: sums and products of loop variables that start at 0.
/// (Indices do not overflow; what is read from memory may be anything.)
bool Emitter::non_negative(const Expr& e) {
  if (e.dtype() != DType::i64) return false;
  if (const IntImm* n = e.as<IntImm>()) return n->value >= 0;
  if (const VarRef* n = e.as<VarRef>()) return frame_.non_negative.count(n->var.get()) > 0;
  if (const Ramp* n = e.as<Ramp>()) return non_negative(n->base) && non_negative(n->stride);
  if (const Broadcast* n = e.as<Broadcast>()) return non_negative(n->value);
  const Binary* n = e.as<Binary>();
  if (!n) return false;
  const bool a = non_negative(n->a), b = non_negative(n->b);
  switch (n->op) {
    case BinaryOp::max:
      return a || b;
    case BinaryOp::add:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::trunc_div:
    case BinaryOp::trunc_mod:
      return a && b;
    default:
      return false;
  }
}

/// Of operands >= 0, `b` a constant: every kind of division is the unsigned one.
llvm::Value* Emitter::divide_non_negative(BinaryOp op, llvm::Value* a, llvm::Value* b) {
  const bool remainder = op == BinaryOp::floor_mod || op == BinaryOp::trunc_mod;
  return remainder ? builder_.CreateURem(a, b) : builder_.CreateUDiv(a, b);
}

}  // namespace tenon
