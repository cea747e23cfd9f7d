#include "ir/fold.h"

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

uint64_t bits(int64_t v) { return static_cast<uint64_t>(v); }

std::optional<int64_t> divide(BinaryOp op, int64_t a, int64_t b, DType t) {
  if (b == 0) return std::nullopt;
  const bool remainder = op == BinaryOp::floor_mod || op == BinaryOp::trunc_mod;
  if (t == DType::u64)
    return static_cast<int64_t>(remainder ? bits(a) % bits(b) : bits(a) / bits(b));
  if (b == -1)
    return remainder ? 0 : static_cast<int64_t>(0 - bits(a));  // the lowest value wraps to itself
  int64_t q = a / b, r = a % b;
  const bool floors = op == BinaryOp::floor_div || op == BinaryOp::floor_mod;
  if (floors && r != 0 && (r < 0) != (b < 0)) q -= 1, r += b;
  return remainder ? r : q;
}

bool less(int64_t a, int64_t b, DType t) { return t == DType::u64 ? bits(a) < bits(b) : a < b; }

}  // namespace

std::optional<int64_t> fold_int(BinaryOp op, int64_t a, int64_t b, DType t) {
  const int width = 8 * byte_size(t);
  switch (op) {
    case BinaryOp::add:
      return wrap_int(static_cast<int64_t>(bits(a) + bits(b)), t);
    case BinaryOp::sub:
      return wrap_int(static_cast<int64_t>(bits(a) - bits(b)), t);
    case BinaryOp::mul:
      return wrap_int(static_cast<int64_t>(bits(a) * bits(b)), t);
    case BinaryOp::div:
      return std::nullopt;
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
    case BinaryOp::trunc_div:
    case BinaryOp::trunc_mod: {
      auto q = divide(op, a, b, t);
      return q ? std::optional(wrap_int(*q, t)) : std::nullopt;
    }
    case BinaryOp::min:
      return less(b, a, t) ? b : a;
    case BinaryOp::max:
      return less(a, b, t) ? b : a;
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return less(a, b, t);
    case BinaryOp::le:
      return !less(b, a, t);
    case BinaryOp::gt:
      return less(b, a, t);
    case BinaryOp::ge:
      return !less(a, b, t);
    case BinaryOp::logical_and:
      return (a != 0) && (b != 0);
    case BinaryOp::logical_or:
      return (a != 0) || (b != 0);
    case BinaryOp::bit_and:
      return a & b;
    case BinaryOp::bit_or:
      return a | b;
    case BinaryOp::bit_xor:
      return a ^ b;
    case BinaryOp::shl:
      if (b < 0 || b >= width) return std::nullopt;
      return wrap_int(static_cast<int64_t>(bits(a) << b), t);
    case BinaryOp::shr:
      if (b < 0 || b >= width) return std::nullopt;
      return t == DType::u64 ? static_cast<int64_t>(bits(a) >> b) : a >> b;
  }
  return std::nullopt;
}

std::optional<double> fold_float(BinaryOp op, double a, double b, DType t) {
  if (t != DType::f32 && t != DType::f64) return std::nullopt;
  // One f64 operation on f32 operands rounded to f32 equals the f32 operation (53 >= 2*24+2 bits).
  auto rounded = [&](double v) {
    return t == DType::f32 ? static_cast<double>(static_cast<float>(v)) : v;
  };
  switch (op) {
    case BinaryOp::add:
      return rounded(a + b);
    case BinaryOp::sub:
      return rounded(a - b);
    case BinaryOp::mul:
      return rounded(a * b);
    case BinaryOp::div:
      return rounded(a / b);
    case BinaryOp::min:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
    case BinaryOp::max:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
    default:
      return std::nullopt;
  }
}

}  // namespace tenon
