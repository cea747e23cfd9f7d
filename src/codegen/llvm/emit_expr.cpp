#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/emitter.h"

namespace tenon {
namespace {

// The C library's name of a function; sigmoid and ldexp have none that takes floats.
const char* libm_name(MathFn fn) {
  switch (fn) {
    case MathFn::exp:
      return "exp";
    case MathFn::log:
      return "log";
    case MathFn::tanh:
      return "tanh";
    case MathFn::erf:
      return "erf";
    case MathFn::sigmoid:
    case MathFn::ldexp:
      return nullptr;
    case MathFn::pow:
      return "pow";
    case MathFn::sin:
      return "sin";
    case MathFn::cos:
      return "cos";
    case MathFn::tan:
      return "tan";
    case MathFn::asin:
      return "asin";
    case MathFn::acos:
      return "acos";
    case MathFn::atan:
      return "atan";
    case MathFn::sinh:
      return "sinh";
    case MathFn::cosh:
      return "cosh";
    case MathFn::asinh:
      return "asinh";
    case MathFn::acosh:
      return "acosh";
    case MathFn::atanh:
      return "atanh";
  }
  throw InternalError("code generation: unknown mathematical function");
}

llvm::Function* declare_libm(llvm::Module& module, MathFn fn, llvm::Type* type, size_t arguments) {
  const std::string name = std::string(libm_name(fn)) + (type->isDoubleTy() ? "" : "f");
  std::vector<llvm::Type*> parameters(arguments, type);
  auto callee = module.getOrInsertFunction(name, llvm::FunctionType::get(type, parameters, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setWillReturn();
  function->setDoesNotAccessMemory();
  return function;
}

int lane_count(llvm::Type* vector) {
  return static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector)->getNumElements());
}

// The lane numbers first, first + 1, ...
std::vector<int> lane_range(int first, int count) {
  std::vector<int> lanes(count);
  for (int i = 0; i < count; ++i) lanes[i] = first + i;
  return lanes;
}

// Whether `mask` is off in every lane where `condition` is.
bool only_where(llvm::Value* mask, llvm::Value* condition) {
  if (mask == condition) return true;
  if (auto* both = llvm::dyn_cast<llvm::BinaryOperator>(mask);
      both && both->getOpcode() == llvm::Instruction::And)
    return only_where(both->getOperand(0), condition) || only_where(both->getOperand(1), condition);
  const auto *m = llvm::dyn_cast<llvm::Constant>(mask),
             *c = llvm::dyn_cast<llvm::Constant>(condition);
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(mask->getType());
  if (!m || !c || !type || mask->getType() != condition->getType()) return false;
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    const llvm::Constant *on = m->getAggregateElement(lane), *wanted = c->getAggregateElement(lane);
    if (!on || !wanted || !(on->isZeroValue() || wanted->isOneValue())) return false;
  }
  return true;
}

// A masked load that gives zeros in every lane where the condition is off: no choice is needed.
bool zero_unless(llvm::Value* condition, llvm::Value* v) {
  auto* load = llvm::dyn_cast<llvm::IntrinsicInst>(v);
  if (!load || load->getIntrinsicID() != llvm::Intrinsic::masked_load) return false;
  auto* off = llvm::dyn_cast<llvm::Constant>(load->getArgOperand(3));
  return off && off->isNullValue() && only_where(load->getArgOperand(2), condition);
}

}  // namespace

llvm::Value* Emitter::evaluate(const Expr& e) {
  memo_.assign(1, {});
  return emit(e);
}

llvm::Value* Emitter::emit(const Expr& e) {
  if (const auto known = given_.find(e.get()); known != given_.end()) return known->second;
  for (auto level = memo_.rbegin(); level != memo_.rend(); ++level) {
    if (auto known = level->find(e.get()); known != level->end()) return known->second;
  }
  llvm::Value* value = emit_node(e);
  memo_.back()[e.get()] = value;
  return value;
}

llvm::Value* Emitter::emit_node(const Expr& e) {
  const Type t = e.type();
  return std::visit(
      overloaded{
          [&](const IntImm& n) -> llvm::Value* { return int_splat(t, n.value); },
          [&](const FloatImm& n) -> llvm::Value* { return float_splat(t, n.value); },
          [&](const VarRef& n) -> llvm::Value* {
            auto known = frame_.vars.find(n.var.get());
            TENON_CHECK(known != frame_.vars.end(), "variable \"{}\" is not bound here",
                        n.var.name());
            return known->second;
          },
          [&](const Binary& n) -> llvm::Value* { return emit_binary(e, n); },
          [&](const Unary& n) -> llvm::Value* { return unary_op(n.op, n.a.type(), emit(n.a)); },
          [&](const Select& n) -> llvm::Value* { return emit_select(n); },
          [&](const Cast& n) -> llvm::Value* {
            return convert(n.value.type(), t.dtype, emit(n.value));
          },
          [&](const Bitcast& n) -> llvm::Value* {
            llvm::Value* bits = to_memory(n.value.dtype(), emit(n.value));
            return from_memory(t.dtype,
                               builder_.CreateBitCast(bits, wide(memory_type(t.dtype), t.lanes)));
          },
          [&](const Load& n) -> llvm::Value* { return emit_load(n, t.lanes); },
          [&](const Call& n) -> llvm::Value* { return emit_call(e, n); },
          [&](const Ramp&) -> llvm::Value* { return lane_indices(e); },
          [&](const Broadcast& n) -> llvm::Value* { return splat(emit(n.value), n.lanes); },
          [&](const Reduce&) -> llvm::Value* {
            throw InternalError("code generation: Reduce in flat code");
          },
          [&](const Let& n) -> llvm::Value* { return emit_let(n); },
          [&](const VectorReduce& n) -> llvm::Value* { return emit_vector_reduce(n); },
          [&](const Shuffle& n) -> llvm::Value* { return emit_shuffle(n, t.lanes); },
          [&](const IntrinsicCall& n) -> llvm::Value* { return emit_intrinsic(n, t); }},
      e.node().v);
}

llvm::Value* Emitter::emit_binary(const Expr& e, const Binary& n) {
  if (e.type() == Type{DType::i64, 1} && n.op <= BinaryOp::mul) return to_value(linear(e));
  llvm::Value* a = emit(n.a);
  llvm::Value* b = emit(n.b);
  const bool divides = n.op >= BinaryOp::floor_div && n.op <= BinaryOp::trunc_mod;
  const bool by_constant =
      llvm::isa<llvm::Constant>(b) && !llvm::cast<llvm::Constant>(b)->isZeroValue();
  if (divides && by_constant && non_negative(n.a) && non_negative(n.b))
    return divide_non_negative(n.op, a, b);
  return binary_op(n.op, n.a.type(), a, b);
}

// Without branches: loads of a side that is not chosen are masked, or read a harmless place.
llvm::Value* Emitter::emit_select(const Select& n) {
  llvm::Value* condition = emit(n.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return emit(known->isOne() ? n.yes : n.no);
  llvm::Value* yes = has_load(n.yes) ? under_predicate(condition, n.yes) : emit(n.yes);
  llvm::Value* no =
      has_load(n.no) ? under_predicate(builder_.CreateNot(condition), n.no) : emit(n.no);
  if (auto* zero = llvm::dyn_cast<llvm::Constant>(no);
      zero && zero->isNullValue() && zero_unless(condition, yes))
    return yes;
  llvm::Value* chosen = builder_.CreateSelect(condition, yes, no);
  const bool copies = bits_.count(yes) > 0 || bits_.count(no) > 0;
  if (copies && known_bits(yes) && known_bits(no))
    bits_[chosen] = builder_.CreateSelect(condition, known_bits(yes), known_bits(no));
  return chosen;
}

llvm::Value* Emitter::under_predicate(llvm::Value* condition, const Expr& e) {
  llvm::Value* outer = predicate_;
  if (!outer) {
    predicate_ = condition;
  } else if (outer->getType() == condition->getType()) {
    predicate_ = builder_.CreateAnd(outer, condition);
  } else if (!outer->getType()->isVectorTy()) {
    predicate_ = builder_.CreateAnd(
        lane_mask(outer, llvm::cast<llvm::FixedVectorType>(condition->getType())->getNumElements()),
        condition);
  } else {  // a scalar question inside a vector one: it concerns every lane alike
    predicate_ = builder_.CreateAnd(scalar_condition(outer), condition);
  }
  memo_.emplace_back();
  llvm::Value* value = emit(e);
  memo_.pop_back();
  predicate_ = outer;
  return value;
}

bool Emitter::has_load(const Expr& e) {
  auto [known, fresh] = has_load_.try_emplace(e.get(), false);
  if (!fresh) return known->second;
  bool found = false;
  walk(e, [&](const Expr& n) {
    if (const Load* load = n.as<Load>(); load && !in_registers(*load->buffer)) found = true;
    if (const VarRef* ref = n.as<VarRef>(); ref) return false;
    return !found;
  });
  return has_load_[e.get()] = found;
}

llvm::Value* Emitter::emit_let(const Let& n) {
  llvm::Value* value = emit(n.value);
  bind(n.var, value);
  llvm::Value* body = emit(n.body);
  unbind(n.var);
  return body;
}

llvm::Value* Emitter::emit_call(const Expr& e, const Call& n) {
  const Type t = e.type();
  std::vector<llvm::Value*> args;
  for (const Expr& a : n.args) args.push_back(emit(a));
  MathFn fn = n.fn;
  if (fn == MathFn::ldexp) return round_to(t.dtype, scale_by_power(args[0], args[1]));
  if (fn == MathFn::sigmoid) {  // 1 / (1 + exp(-x))
    fn = MathFn::exp;
    args[0] = builder_.CreateFNeg(args[0]);
  }
  llvm::Function* callee = declare_libm(module_, fn, element_type(t.dtype), args.size());
  llvm::Value* result = nullptr;
  if (t.lanes == 1) {
    result = builder_.CreateCall(callee, args);
  } else {
    result = llvm::PoisonValue::get(value_type(t));
    for (int lane = 0; lane < t.lanes; ++lane) {
      std::vector<llvm::Value*> scalars;
      for (llvm::Value* a : args) scalars.push_back(builder_.CreateExtractElement(a, lane));
      result = builder_.CreateInsertElement(result, builder_.CreateCall(callee, scalars), lane);
    }
  }
  if (n.fn == MathFn::sigmoid) {
    llvm::Constant* one = float_splat(t, 1);
    result = builder_.CreateFDiv(one, builder_.CreateFAdd(one, result));
  }
  return round_to(t.dtype, result);
}

// x * 2^n, by vscalef where the target has it: a register at a time, part of one widened.
llvm::Value* Emitter::scale_by_power(llvm::Value* x, llvm::Value* n) {
  llvm::Type* type = x->getType();
  llvm::Type* element = type->getScalarType();
  if (!target_.has_feature("avx512f")) {
    llvm::Type* ints = type->getWithNewType(builder_.getInt32Ty());
    return builder_.CreateIntrinsic(llvm::Intrinsic::ldexp, {type, ints},
                                    {x, builder_.CreateFPToSI(n, ints)});
  }
  const bool single = element->isFloatTy(), vector = type->isVectorTy();
  const int lanes = vector ? lane_count(type) : 1, whole = single ? 16 : 8;
  if (!vector) x = splat(x, whole), n = splat(n, whole);
  std::vector<llvm::Value*> parts;
  for (int first = 0; first < lanes; first += whole) {
    std::vector<int> piece = lane_range(first, whole);
    for (int& lane : piece) lane = vector && lane >= lanes ? -1 : lane;
    llvm::Constant* all =
        llvm::Constant::getAllOnesValue(builder_.getIntNTy(static_cast<unsigned>(whole)));
    parts.push_back(builder_.CreateIntrinsic(
        single ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
               : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512,
        {},
        {builder_.CreateShuffleVector(x, piece), builder_.CreateShuffleVector(n, piece),
         llvm::Constant::getNullValue(wide(element, whole)), all, builder_.getInt32(4)}));
  }
  llvm::Value* result = llvm::concatenateVectors(builder_, parts);
  if (!vector) return builder_.CreateExtractElement(result, uint64_t{0});
  return lanes % whole == 0 ? result : builder_.CreateShuffleVector(result, lane_range(0, lanes));
}

// Halves are combined until one lane is left; an odd last lane joins at the end. (The reduction
// intrinsics become scalar chains for min and max that propagate NaN.)
llvm::Value* Emitter::emit_vector_reduce(const VectorReduce& n) {
  llvm::Value* value = emit(n.value);
  const DType dtype = n.value.dtype();
  int lanes = n.value.lanes();
  if (n.op == BinaryOp::logical_and && lanes > 1) return builder_.CreateAndReduce(value);
  if (n.op == BinaryOp::logical_or && lanes > 1) return builder_.CreateOrReduce(value);
  std::vector<llvm::Value*> odd;
  while (lanes > 1) {
    if (lanes % 2 == 1) odd.push_back(builder_.CreateExtractElement(value, lanes - 1));
    lanes /= 2;
    llvm::Value* low = lanes == 1 ? builder_.CreateExtractElement(value, uint64_t{0})
                                  : builder_.CreateShuffleVector(value, lane_range(0, lanes));
    llvm::Value* high = lanes == 1 ? builder_.CreateExtractElement(value, 1)
                                   : builder_.CreateShuffleVector(value, lane_range(lanes, lanes));
    value = binary_op(n.op, {dtype, lanes}, low, high);
  }
  for (llvm::Value* v : odd) value = binary_op(n.op, {dtype, 1}, value, v);
  return value;
}

}  // namespace tenon
