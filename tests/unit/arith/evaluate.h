#pragma once
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <stdexcept>

namespace tenon {

using Valuation = std::unordered_map<const VarNode*, int64_t>;

inline int64_t floored(int64_t a, int64_t b, bool remainder) {
  int64_t q = a / b, r = a % b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1, r += b;
  return remainder ? r : q;
}

/// A naive evaluator of scalar integer and bool expressions, written apart from the library's
/// folding: wide arithmetic, then a wrap to the type. Values of i64 stay far from overflow in these
/// tests.
inline int64_t evaluate(const Expr& e, const Valuation& at) {
  auto value = [&](const Expr& part) { return evaluate(part, at); };
  if (const auto* n = e.as<IntImm>()) return n->value;
  if (const auto* v = e.as<VarRef>()) return at.at(v->var.get());
  if (const auto* s = e.as<Select>()) return value(s->condition) ? value(s->yes) : value(s->no);
  if (const auto* c = e.as<Cast>()) return wrap_int(value(c->value), e.dtype());
  if (const auto* u = e.as<Unary>()) {
    int64_t a = value(u->a);
    switch (u->op) {
      case UnaryOp::neg:
        return wrap_int(-a, e.dtype());
      case UnaryOp::abs:
        return wrap_int(a < 0 ? -a : a, e.dtype());
      case UnaryOp::logical_not:
        return !a;
      case UnaryOp::bit_not:
        return wrap_int(~a, e.dtype());
      default:
        throw std::logic_error("evaluate: unary");
    }
  }
  const auto* n = e.as<Binary>();
  if (!n) throw std::logic_error("evaluate: node");
  int64_t a = value(n->a), b = value(n->b), out = 0;
  switch (n->op) {
    case BinaryOp::add:
      out = a + b;
      break;
    case BinaryOp::sub:
      out = a - b;
      break;
    case BinaryOp::mul:
      out = a * b;
      break;
    case BinaryOp::div:
      throw std::logic_error("evaluate: float division");
    case BinaryOp::floor_div:
      out = floored(a, b, false);
      break;
    case BinaryOp::floor_mod:
      out = floored(a, b, true);
      break;
    case BinaryOp::trunc_div:
      out = a / b;
      break;
    case BinaryOp::trunc_mod:
      out = a % b;
      break;
    case BinaryOp::min:
      out = a < b ? a : b;
      break;
    case BinaryOp::max:
      out = a < b ? b : a;
      break;
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    case BinaryOp::ge:
      return a >= b;
    case BinaryOp::logical_and:
      return a && b;
    case BinaryOp::logical_or:
      return a || b;
    case BinaryOp::bit_and:
      out = a & b;
      break;
    case BinaryOp::bit_or:
      out = a | b;
      break;
    case BinaryOp::bit_xor:
      out = a ^ b;
      break;
    case BinaryOp::shl:
      out = static_cast<int64_t>(static_cast<uint64_t>(a) << b);
      break;
    case BinaryOp::shr:
      out = a >> b;
      break;
  }
  return wrap_int(out, e.dtype());
}

}  // namespace tenon
