#include "interp/value.h"

#include <tenon/ir/ops.h>
#include <tenon/support/error.h>
#include <tenon/support/float16.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/fold.h"

namespace tenon {
namespace {

template <class T>
T read_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
void write_as(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

int64_t saturate(double value, DType t) {
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  if (t == u64) {
    if (value <= 0) return 0;
    if (value >= 0x1p64) return -1;
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  double low = static_cast<double>(min_int(t)), high = static_cast<double>(max_int(t));
  if (value <= low) return min_int(t);
  if (value >= high) return max_int(t);
  return static_cast<int64_t>(value);
}

double to_float(int64_t value, DType from, DType to) {
  if (from == u64) {
    auto bits = static_cast<uint64_t>(value);
    return to == f64 ? static_cast<double>(bits) : round_float(static_cast<float>(bits), to);
  }
  return to == f64 ? static_cast<double>(value) : round_float(static_cast<float>(value), to);
}

// Operations by template, so that each has one address to call.

template <BinaryOp op, DType t>
Value int_op(Value a, Value b) {
  if constexpr (op == BinaryOp::shl || op == BinaryOp::shr) b.i &= 8 * byte_size(t) - 1;
  return int_value(*fold_int(op, a.i, b.i, t));
}

// What runs in every index needs no general folding.
Value add_i64(Value a, Value b) {
  return int_value(static_cast<int64_t>(static_cast<uint64_t>(a.i) + static_cast<uint64_t>(b.i)));
}
Value sub_i64(Value a, Value b) {
  return int_value(static_cast<int64_t>(static_cast<uint64_t>(a.i) - static_cast<uint64_t>(b.i)));
}
Value mul_i64(Value a, Value b) {
  return int_value(static_cast<int64_t>(static_cast<uint64_t>(a.i) * static_cast<uint64_t>(b.i)));
}
Value lt_i64(Value a, Value b) { return int_value(a.i < b.i); }
Value and_bool(Value a, Value b) { return int_value(a.i & b.i); }

template <BinaryOp op>
double float_result(double a, double b) {
  if constexpr (op == BinaryOp::add) return a + b;
  if constexpr (op == BinaryOp::sub) return a - b;
  if constexpr (op == BinaryOp::mul) return a * b;
  if constexpr (op == BinaryOp::div) return a / b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if constexpr (op == BinaryOp::min) return b < a ? b : a;
  if constexpr (op == BinaryOp::max) return a < b ? b : a;
}

template <BinaryOp op, DType t>
Value float_op(Value a, Value b) {
  double result = float_result<op>(a.f, b.f);
  if constexpr (t == f64) return float_value(result);
  if constexpr (t == f32) return float_value(static_cast<float>(result));
  return float_value(round_float(result, t));
}

template <BinaryOp op>
Value float_compare(Value a, Value b) {
  switch (op) {
    case BinaryOp::eq:
      return int_value(a.f == b.f);
    case BinaryOp::ne:
      return int_value(a.f != b.f);
    case BinaryOp::lt:
      return int_value(a.f < b.f);
    case BinaryOp::le:
      return int_value(a.f <= b.f);
    case BinaryOp::gt:
      return int_value(a.f > b.f);
    default:
      return int_value(a.f >= b.f);
  }
}

template <BinaryOp op>
BinaryFn typed(DType t) {
  constexpr bool arithmetic = op <= BinaryOp::div || op == BinaryOp::min || op == BinaryOp::max;
  constexpr bool comparison = op >= BinaryOp::eq && op <= BinaryOp::ge;
  if constexpr (arithmetic) {
    if (t == f16) return float_op<op, f16>;
    if (t == bf16) return float_op<op, bf16>;
    if (t == f32) return float_op<op, f32>;
    if (t == f64) return float_op<op, f64>;
  }
  if constexpr (comparison) {
    if (is_float(t)) return float_compare<op>;
  }
  switch (t) {
    case DType::boolean:
      return int_op<op, boolean>;
    case DType::i8:
      return int_op<op, i8>;
    case DType::i16:
      return int_op<op, i16>;
    case DType::i32:
      return int_op<op, i32>;
    case DType::i64:
      return int_op<op, i64>;
    case DType::u8:
      return int_op<op, u8>;
    case DType::u16:
      return int_op<op, u16>;
    case DType::u32:
      return int_op<op, u32>;
    case DType::u64:
      return int_op<op, u64>;
    default:
      break;
  }
  throw InternalError(fmt::format("interpreter: {} of {}", name(op), name(t)));
}

template <size_t... Ops>
BinaryFn by_op(BinaryOp op, DType t, std::index_sequence<Ops...>) {
  using Get = BinaryFn (*)(DType);
  static constexpr Get kTable[] = {typed<static_cast<BinaryOp>(Ops)>...};
  return kTable[static_cast<size_t>(op)](t);
}

template <UnaryOp op, DType t>
Value unary_op(Value a) {
  if constexpr (op == UnaryOp::logical_not) return int_value(a.i == 0);
  if constexpr (op == UnaryOp::is_nan) return int_value(std::isnan(a.f));
  if constexpr (is_float(t)) {
    if constexpr (op == UnaryOp::neg) return float_value(-a.f);
    if constexpr (op == UnaryOp::abs) return float_value(std::fabs(a.f));
    if constexpr (op == UnaryOp::sqrt) return float_value(round_float(std::sqrt(a.f), t));
    if constexpr (op == UnaryOp::floor) return float_value(std::floor(a.f));
    if constexpr (op == UnaryOp::ceil) return float_value(std::ceil(a.f));
    if constexpr (op == UnaryOp::trunc) return float_value(std::trunc(a.f));
    if constexpr (op == UnaryOp::round) return float_value(std::nearbyint(a.f));
  } else {
    auto negative = static_cast<int64_t>(0 - static_cast<uint64_t>(a.i));
    if constexpr (op == UnaryOp::neg) return int_value(wrap_int(negative, t));
    if constexpr (op == UnaryOp::abs) {
      return int_value(is_signed_int(t) && a.i < 0 ? wrap_int(negative, t) : a.i);
    }
    if constexpr (op == UnaryOp::bit_not) return int_value(wrap_int(~a.i, t));
  }
  throw InternalError(fmt::format("interpreter: {} of {}", name(op), name(t)));
}

template <UnaryOp op, size_t... Types>
UnaryFn unary_by_type(DType t, std::index_sequence<Types...>) {
  static constexpr UnaryFn kTable[] = {unary_op<op, static_cast<DType>(Types)>...};
  return kTable[static_cast<size_t>(t)];
}

template <size_t... Ops>
UnaryFn unary_by_op(UnaryOp op, DType t, std::index_sequence<Ops...>) {
  using Get = UnaryFn (*)(DType, std::make_index_sequence<13>);
  static constexpr Get kTable[] = {unary_by_type<static_cast<UnaryOp>(Ops)>...};
  return kTable[static_cast<size_t>(op)](t, {});
}

}  // namespace

double round_float(double value, DType t) {
  if (t == f64) return value;
  auto single = static_cast<float>(value);
  if (t == f16) return from_f16(to_f16(single));
  return t == bf16 ? from_bf16(to_bf16(single)) : single;
}

Value read_element(const std::byte* at, DType t) {
  switch (t) {
    case DType::boolean:
      return int_value(read_as<uint8_t>(at) != 0);
    case DType::i8:
      return int_value(read_as<int8_t>(at));
    case DType::i16:
      return int_value(read_as<int16_t>(at));
    case DType::i32:
      return int_value(read_as<int32_t>(at));
    case DType::u8:
      return int_value(read_as<uint8_t>(at));
    case DType::u16:
      return int_value(read_as<uint16_t>(at));
    case DType::u32:
      return int_value(read_as<uint32_t>(at));
    case DType::i64:
    case DType::u64:
      return int_value(read_as<int64_t>(at));
    case DType::f16:
      return float_value(from_f16(read_as<uint16_t>(at)));
    case DType::bf16:
      return float_value(from_bf16(read_as<uint16_t>(at)));
    case DType::f32:
      return float_value(read_as<float>(at));
    case DType::f64:
      return float_value(read_as<double>(at));
  }
  return int_value(0);
}

void write_element(std::byte* at, DType t, Value value) {
  switch (t) {
    case DType::boolean:
    case DType::i8:
    case DType::u8:
      return write_as(at, static_cast<uint8_t>(value.i));
    case DType::i16:
    case DType::u16:
      return write_as(at, static_cast<uint16_t>(value.i));
    case DType::i32:
    case DType::u32:
      return write_as(at, static_cast<uint32_t>(value.i));
    case DType::i64:
    case DType::u64:
      return write_as(at, value.i);
    case DType::f16:
      return write_as(at, to_f16(value.f));
    case DType::bf16:
      return write_as(at, to_bf16(value.f));
    case DType::f32:
      return write_as(at, static_cast<float>(value.f));
    case DType::f64:
      return write_as(at, value.f);
  }
}

Value convert(Value value, DType from, DType to) {
  if (is_bool(to)) return int_value(is_float(from) ? value.f != 0 : value.i != 0);
  if (is_float(to)) {
    return float_value(is_float(from) ? round_float(value.f, to) : to_float(value.i, from, to));
  }
  return int_value(is_float(from) ? saturate(value.f, to) : wrap_int(value.i, to));
}

Value reinterpret_bits(Value value, DType from, DType to) {
  std::byte bytes[8] = {};
  write_element(bytes, from, value);
  return read_element(bytes, to);
}

BinaryFn binary_fn(BinaryOp op, DType t) {
  if (t == i64) {
    if (op == BinaryOp::add) return add_i64;
    if (op == BinaryOp::sub) return sub_i64;
    if (op == BinaryOp::mul) return mul_i64;
    if (op == BinaryOp::lt) return lt_i64;
  }
  if (op == BinaryOp::logical_and) return and_bool;
  return by_op(op, t, std::make_index_sequence<static_cast<size_t>(BinaryOp::shr) + 1>());
}

UnaryFn unary_fn(UnaryOp op, DType t) {
  return unary_by_op(op, t, std::make_index_sequence<static_cast<size_t>(UnaryOp::is_nan) + 1>());
}

Value math_fn(MathFn fn, DType t, Value a, Value b) {
  auto compute = [&](double x) {
    switch (fn) {
      case MathFn::exp:
        return std::exp(x);
      case MathFn::log:
        return std::log(x);
      case MathFn::tanh:
        return std::tanh(x);
      case MathFn::erf:
        return std::erf(x);
      case MathFn::sigmoid:
        return 1 / (1 + std::exp(-x));
      case MathFn::pow:
        return std::pow(x, b.f);
      case MathFn::sin:
        return std::sin(x);
      case MathFn::cos:
        return std::cos(x);
      case MathFn::tan:
        return std::tan(x);
      case MathFn::asin:
        return std::asin(x);
      case MathFn::acos:
        return std::acos(x);
      case MathFn::atan:
        return std::atan(x);
      case MathFn::sinh:
        return std::sinh(x);
      case MathFn::cosh:
        return std::cosh(x);
      case MathFn::asinh:
        return std::asinh(x);
      case MathFn::acosh:
        return std::acosh(x);
      case MathFn::atanh:
        return std::atanh(x);
      case MathFn::ldexp:
        return std::abs(b.f) < 10000 ? std::ldexp(x, static_cast<int>(b.f)) : x * std::exp2(b.f);
    }
    return x;
  };
  return float_value(round_float(compute(a.f), t));
}

}  // namespace tenon
