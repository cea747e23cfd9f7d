#include "codegen/text/helpers.h"

#include <fmt/format.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace tenon {
namespace {

bool is_half(DType t) { return t == f16 || t == bf16; }

/// Unsigned, of at least 32 bits: arithmetic in it wraps and is never undefined.
DType unsigned_of(DType t) { return byte_size(t) == 8 ? u64 : u32; }

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return "+";
    case BinaryOp::sub:
      return "-";
    case BinaryOp::mul:
      return "*";
    case BinaryOp::div:
      return "/";
    case BinaryOp::eq:
      return "==";
    case BinaryOp::ne:
      return "!=";
    case BinaryOp::lt:
      return "<";
    case BinaryOp::le:
      return "<=";
    case BinaryOp::gt:
      return ">";
    case BinaryOp::ge:
      return ">=";
    case BinaryOp::bit_and:
    case BinaryOp::logical_and:
      return "&";
    case BinaryOp::bit_or:
    case BinaryOp::logical_or:
      return "|";
    case BinaryOp::bit_xor:
      return "^";
    default:
      return "";
  }
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }

/// The shortest text that gives the same double.
std::string hex_float(double value) { return fmt::format("{:a}", value); }

}  // namespace

std::string value_type(const Dialect& d, DType t) {
  if (is_bool(t)) return d.type(i32);
  return is_half(t) ? d.type(f32) : d.type(t);
}

std::string int_text(int64_t value, DType t) {
  switch (t) {
    case DType::i64:
      return value == INT64_MIN ? "(-9223372036854775807L - 1)" : fmt::format("{}L", value);
    case DType::u64:
      return fmt::format("{}ul", static_cast<uint64_t>(value));
    case DType::u32:
      return fmt::format("{}u", static_cast<uint32_t>(value));
    case DType::i32:
      return value == INT32_MIN ? "(-2147483647 - 1)" : fmt::format("{}", value);
    default:
      return fmt::format("{}", value);
  }
}

std::string float_text(const Dialect& d, double value, DType t) {
  if (t == f64) {
    if (std::isfinite(value)) return hex_float(value);
    return fmt::format("{}({:#x}ul)", d.bits_as(f64), std::bit_cast<uint64_t>(value));
  }
  const auto single = static_cast<float>(value);
  if (std::isfinite(single)) return hex_float(single) + "f";
  return fmt::format("{}({:#x}u)", d.bits_as(f32), std::bit_cast<uint32_t>(single));
}

std::string Helpers::call(const std::string& name, const std::vector<std::string>& args) {
  return fmt::format("{}({})", name, join(args));
}

void Helpers::define(const std::string& name, const std::string& text) {
  if (std::find(defined_.begin(), defined_.end(), name) != defined_.end()) return;
  defined_.push_back(name);
  definitions_ += d_.function + text + "\n";
}

std::string Helpers::binary(BinaryOp op, DType t, const std::string& a, const std::string& b) {
  if (is_comparison(op)) return fmt::format("({} {} {})", a, symbol(op), b);
  if (is_float(t)) return float_op(op, t, a, b);
  return integer_op(op, t, a, b);
}

std::string Helpers::index_op(BinaryOp op, DType t, const std::string& a, const std::string& b) {
  const bool plain = op == BinaryOp::add || op == BinaryOp::sub || op == BinaryOp::mul;
  return plain ? fmt::format("({} {} {})", a, symbol(op), b) : binary(op, t, a, b);
}

std::string Helpers::divide_by(BinaryOp op, DType t, const std::string& a, int64_t b) {
  if (!std::has_single_bit(static_cast<uint64_t>(b))) return divide(op, t, a, int_text(b, t));
  if (op == BinaryOp::floor_div)
    return fmt::format("({} >> {})", a, std::countr_zero(static_cast<uint64_t>(b)));
  return fmt::format("({} & {})", a, int_text(b - 1, t));
}

std::string Helpers::divide_natural(BinaryOp op, const std::string& a, const std::string& b) {
  return fmt::format("({} {} {})", a, op == BinaryOp::floor_div ? "/" : "%", b);
}

std::string Helpers::integer_op(BinaryOp op, DType t, const std::string& a, const std::string& b) {
  const std::string type = value_type(d_, t), wide = d_.type(unsigned_of(t));
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
      return fmt::format("(({})(({}){} {} ({}){}))", type, wide, a, symbol(op), wide, b);
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
      return fmt::format("(({})({} {} {}))", type, a, symbol(op), b);
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
      return fmt::format("({} {} {})", a, symbol(op), b);
    case BinaryOp::shl:
      return fmt::format("(({})(({}){} << ({} & {})))", type, wide, a, b, 8 * byte_size(t) - 1);
    case BinaryOp::shr:
      return fmt::format("(({})({} >> ({} & {})))", type, a, b, 8 * byte_size(t) - 1);
    case BinaryOp::min:
    case BinaryOp::max: {
      const std::string fn = fmt::format("tn_{}_{}", name(op), name(t));
      define(fn, fmt::format("{} {}({} a, {} b) {{ return a {} b ? a : b; }}", type, fn, type, type,
                             op == BinaryOp::min ? "<" : ">"));
      return call(fn, {a, b});
    }
    default:
      return divide(op, t, a, b);
  }
}

/// No divisor faults: 0 counts as 1, and by -1 the negation wraps.
std::string Helpers::divide(BinaryOp op, DType t, const std::string& a, const std::string& b) {
  const std::string fn = fmt::format("tn_{}_{}", name(op), name(t)), type = value_type(d_, t),
                    wide = d_.type(unsigned_of(t));
  const bool remainder = op == BinaryOp::floor_mod || op == BinaryOp::trunc_mod,
             floors = op == BinaryOp::floor_div || op == BinaryOp::floor_mod;
  std::string body = fmt::format("const {} d = b == 0 ? 1 : b; ", type);
  if (!is_signed_int(t)) {
    body += fmt::format("return a {} d;", remainder ? "%" : "/");
  } else if (remainder) {
    body += fmt::format("if (d == -1) return 0; const {} r = ({})(a % d); ", type, type);
    body += floors ? fmt::format("return r != 0 && (r < 0) != (d < 0) ? ({})(r + d) : r;", type)
                   : "return r;";
  } else {
    body += fmt::format("if (d == -1) return ({})(0 - ({})a); const {} q = ({})(a / d); ", type,
                        wide, type, type);
    body += floors ? fmt::format("return a % d != 0 && (a < 0) != (d < 0) ? ({})(q - 1) : q;", type)
                   : "return q;";
  }
  define(fn, fmt::format("{} {}({} a, {} b) {{ {} }}", type, fn, type, type, body));
  return call(fn, {a, b});
}

std::string Helpers::float_op(BinaryOp op, DType t, const std::string& a, const std::string& b) {
  if (op == BinaryOp::min || op == BinaryOp::max) {
    const std::string type = value_type(d_, t);
    const std::string fn = fmt::format("tn_{}_{}", name(op), t == f64 ? "f64" : "f32");
    define(fn, fmt::format("{} {}({} a, {} b) {{ return a {} b || a != a ? a : b; }}", type, fn,
                           type, type, op == BinaryOp::min ? "<" : ">"));
    return call(fn, {a, b});
  }
  TENON_CHECK(!symbol(op).empty(), "text code: {} of {}", name(op), name(t));
  return rounded(t, fmt::format("({} {} {})", a, symbol(op), b));
}

std::string Helpers::unary(UnaryOp op, DType t, const std::string& a) {
  const std::string type = value_type(d_, t), wide = is_float(t) ? "" : d_.type(unsigned_of(t));
  switch (op) {
    case UnaryOp::neg:
      return is_float(t) ? fmt::format("(-({}))", a)
                         : fmt::format("(({})(0 - ({}){}))", type, wide, a);
    case UnaryOp::abs: {
      if (is_float(t)) return call("fabs", {a});
      if (!is_signed_int(t)) return a;
      const std::string fn = fmt::format("tn_abs_{}", name(t));
      define(fn, fmt::format("{} {}({} a) {{ return a < 0 ? ({})(0 - ({})a) : a; }}", type, fn,
                             type, type, wide));
      return call(fn, {a});
    }
    case UnaryOp::logical_not:
      return fmt::format("(!{})", a);
    case UnaryOp::bit_not:
      return fmt::format("(({})(~{}))", type, a);
    case UnaryOp::sqrt:
      return rounded(t, call("sqrt", {a}));
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::trunc:
      return call(std::string(name(op)), {a});
    case UnaryOp::round:
      return call("rint", {a});
    case UnaryOp::is_nan: {
      const std::string fn = fmt::format("tn_is_nan_{}", t == f64 ? "f64" : "f32");
      define(fn, fmt::format("int {}({} a) {{ return a != a; }}", fn, type));
      return call(fn, {a});
    }
  }
  return a;
}

std::string Helpers::cast(DType to, DType from, const std::string& a) {
  if (to == from) return a;
  if (is_bool(to)) return fmt::format("({} != 0)", a);
  if (is_half(to)) {
    if (is_half(from) && to != from) return rounded(to, a);
    return rounded(to, fmt::format("(({}){})", d_.type(f32), a));
  }
  if (is_int(to) && is_float(from)) return to_integer(to, from, a);
  return fmt::format("(({}){})", d_.type(to), a);
}

/// Truncates, saturates, and NaN is 0.
std::string Helpers::to_integer(DType to, DType from, const std::string& a) {
  const DType source = from == f64 ? f64 : f32;
  const std::string fn = fmt::format("tn_{}_from_{}", name(to), name(source)), type = d_.type(to);
  const int bits = 8 * byte_size(to);
  const bool is_signed = is_signed_int(to);
  const double high = std::ldexp(1.0, is_signed ? bits - 1 : bits), low = is_signed ? -high : 0;
  const std::string largest = is_signed            ? int_text(max_int(to), to)
                              : byte_size(to) == 8 ? "18446744073709551615ul"
                                                   : fmt::format("{}u", (uint64_t{1} << bits) - 1);
  define(fn, fmt::format("{0} {1}({2} a) {{ return a != a ? 0 : a <= {3} ? {4} : a >= {5} ? {6} : "
                         "({0})a; }}",
                         type, fn, d_.type(source), float_text(d_, low, source),
                         is_signed ? int_text(min_int(to), to) : "0", float_text(d_, high, source),
                         largest));
  return call(fn, {a});
}

std::string Helpers::bitcast(DType to, DType from, const std::string& a) {
  if (is_half(to)) return from_memory(to, fmt::format("(({}){})", d_.type(u16), a));
  if (is_half(from)) return fmt::format("(({}){})", d_.type(to), to_memory(from, a));
  return fmt::format("{}({})", d_.bits_as(to), a);
}

void Helpers::define_half() {
  define("tn_f16_bits",
         "ushort tn_f16_bits(float x) {\n"
         "  const uint u = as_uint(x), s = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;\n"
         "  if (a > 0x7f800000u) return (ushort)(s | 0x7e00u);\n"
         "  if (a >= 0x477ff000u) return (ushort)(s | 0x7c00u);\n"
         "  if (a < 0x38800000u) return (ushort)(s | (uint)rint(as_float(a) * 0x1p+24f));\n"
         "  return (ushort)(s | ((a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u) >> 13));\n"
         "}");
  define("tn_f16_value",
         "float tn_f16_value(ushort h) {\n"
         "  const uint s = ((uint)h & 0x8000u) << 16, e = h & 0x7c00u, m = h & 0x3ffu;\n"
         "  if (e == 0x7c00u) return as_float(s | 0x7f800000u | (m << 13));\n"
         "  if (e == 0) return as_float(s | as_uint((float)m * 0x1p-24f));\n"
         "  return as_float(s | ((((uint)h & 0x7fffu) << 13) + 0x38000000u));\n"
         "}");
  define("tn_bf16_bits",
         "ushort tn_bf16_bits(float x) {\n"
         "  const uint u = as_uint(x);\n"
         "  if ((u & 0x7fffffffu) > 0x7f800000u) return (ushort)((u >> 16) | 0x40u);\n"
         "  return (ushort)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);\n"
         "}");
  define("tn_bf16_value", "float tn_bf16_value(ushort h) { return as_float((uint)h << 16); }");
}

std::string Helpers::from_memory(DType t, const std::string& element) {
  if (!is_half(t)) return element;
  define_half();
  return call(fmt::format("tn_{}_value", name(t)), {element});
}

std::string Helpers::to_memory(DType t, const std::string& value) {
  if (!is_half(t)) return value;
  define_half();
  return call(fmt::format("tn_{}_bits", name(t)), {value});
}

std::string Helpers::rounded(DType t, const std::string& a) {
  return is_half(t) ? from_memory(t, to_memory(t, a)) : a;
}

}  // namespace tenon
