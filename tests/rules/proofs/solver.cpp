#include "solver.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>
#include <tenon/support/error.h>

namespace tenon {

z3::expr Translator::number(int64_t value) {
  return bits_ ? context_.bv_val(value, static_cast<unsigned>(bits_)) : context_.int_val(value);
}

z3::expr Translator::variable(const Var& v) {
  auto known = variables_.find(v.name());
  if (known == variables_.end()) {
    const z3::expr made = is_bool(v.type().dtype) ? context_.bool_const(v.name().c_str())
                          : bits_
                              ? context_.bv_const(v.name().c_str(), static_cast<unsigned>(bits_))
                              : context_.int_const(v.name().c_str());
    known = variables_.emplace(v.name(), made).first;
  }
  return known->second;
}

z3::expr Translator::less(const z3::expr& a, const z3::expr& b) {
  return bits_ && !signed_ ? z3::ult(a, b) : a < b;
}

// Bit vectors: rounds to zero, then one less where the remainder has the other sign.
z3::expr Translator::divide_bits(BinaryOp op, const z3::expr& a, const z3::expr& b) {
  const bool remainder = op == BinaryOp::floor_mod || op == BinaryOp::trunc_mod;
  if (!signed_) return remainder ? z3::urem(a, b) : z3::udiv(a, b);
  const z3::expr quotient = a / b, rest = z3::srem(a, b), zero = number(0);
  if (op == BinaryOp::trunc_div) return quotient;
  if (op == BinaryOp::trunc_mod) return rest;
  const z3::expr below = rest != zero && (rest < zero) != (b < zero);
  return remainder ? z3::ite(below, rest + b, rest)
                   : z3::ite(below, quotient - number(1), quotient);
}

// Integers: SMT-LIB's div leaves a remainder that is not negative, which is floor where the divisor
// is positive; floor(a / b) = floor(-a / -b).
z3::expr Translator::divide(BinaryOp op, const z3::expr& a, const z3::expr& b) {
  if (divisors_) assume(b != number(0));
  if (bits_) return divide_bits(op, a, b);
  const z3::expr zero = number(0), floor = z3::ite(b > zero, a / b, (-a) / (-b));
  if (op == BinaryOp::floor_div) return floor;
  if (op == BinaryOp::floor_mod) return a - b * floor;
  const z3::expr exact = floor * b == a;
  const z3::expr trunc = z3::ite(exact || (a > zero) == (b > zero), floor, floor + number(1));
  return op == BinaryOp::trunc_div ? trunc : a - b * trunc;
}

z3::expr Translator::binary(BinaryOp op, const z3::expr& a, const z3::expr& b, bool numbers) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::trunc_div:
    case BinaryOp::trunc_mod:
      return divide(op, a, b);
    case BinaryOp::min:
      return z3::ite(less(b, a), b, a);
    case BinaryOp::max:
      return z3::ite(less(a, b), b, a);
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return less(a, b);
    case BinaryOp::le:
      return !less(b, a);
    case BinaryOp::gt:
      return less(b, a);
    case BinaryOp::ge:
      return !less(a, b);
    case BinaryOp::logical_and:
      return a && b;
    case BinaryOp::logical_or:
      return a || b;
    case BinaryOp::bit_and:
      return numbers ? a & b : a && b;
    case BinaryOp::bit_or:
      return numbers ? a | b : a || b;
    case BinaryOp::bit_xor:
      return numbers ? a ^ b : a != b;
    case BinaryOp::shl:  // the amount is taken modulo the width
      return z3::shl(a, z3::urem(b, number(bits_)));
    case BinaryOp::shr:
      return signed_ ? z3::ashr(a, z3::urem(b, number(bits_)))
                     : z3::lshr(a, z3::urem(b, number(bits_)));
    case BinaryOp::div:
      break;
  }
  throw InternalError("no formula for " + std::string(name(op)));
}

z3::expr Translator::operator()(const Expr& e) {
  if (const IntImm* n = e.as<IntImm>())
    return is_bool(e.dtype()) ? context_.bool_val(n->value != 0) : number(n->value);
  if (const VarRef* n = e.as<VarRef>()) return variable(n->var);
  if (const Binary* n = e.as<Binary>())
    return binary(n->op, (*this)(n->a), (*this)(n->b), !is_bool(n->a.dtype()));
  if (const Unary* n = e.as<Unary>()) {
    const z3::expr a = (*this)(n->a);
    if (n->op == UnaryOp::neg) return -a;
    if (n->op == UnaryOp::logical_not) return !a;
    if (n->op == UnaryOp::abs) return z3::ite(less(a, number(0)), -a, a);
  }
  if (const Select* n = e.as<Select>())
    return z3::ite((*this)(n->condition), (*this)(n->yes), (*this)(n->no));
  throw InternalError("no formula for " + print(e));
}

z3::expr Translator::widened(const z3::expr& e) {
  const auto more = static_cast<unsigned>(bits_) + 8;
  return signed_ ? z3::sext(e, more) : z3::zext(e, more);
}

z3::expr Translator::exact_number(int64_t value) {
  return bits_ ? context_.bv_val(value, 2 * static_cast<unsigned>(bits_) + 8)
               : context_.int_val(value);
}

z3::expr Translator::exact(const Expr& e) {
  if (!bits_) return (*this)(e);
  if (const IntImm* n = e.as<IntImm>()) return exact_number(n->value);
  if (const VarRef* n = e.as<VarRef>()) return widened(variable(n->var));
  const Binary& n = *e.as<Binary>();
  const z3::expr a = exact(n.a), b = exact(n.b);
  switch (n.op) {
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::floor_mod:  // conditions use it of positive numbers only
      return z3::urem(a, b);
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::gt:
      return a > b;
    case BinaryOp::ge:
      return a >= b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::logical_and:
      return a && b;
    default:
      throw InternalError("no formula for the condition " + print(e));
  }
}

Verdict Translator::prove(const z3::expr& claim, unsigned limit_ms) {
  z3::solver solver(context_);
  z3::params params(context_);
  params.set("timeout", limit_ms);
  solver.set(params);
  for (unsigned k = 0; k < assumptions_.size(); ++k) solver.add(assumptions_[k]);
  solver.add(!claim);
  switch (solver.check()) {
    case z3::unsat:
      return Verdict::proved;
    case z3::sat:
      counterexample_ = Z3_model_to_string(context_, solver.get_model());
      return Verdict::refuted;
    default:
      return Verdict::unknown;
  }
}

}  // namespace tenon
